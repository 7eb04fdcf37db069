#include "where_python.h"

#include "where.h"

static PyObject *begin(PyObject *module, PyObject *args) {
    unsigned long long table, area;
    (void)module;
    if (!PyArg_ParseTuple(args, "KK", &table, &area)) return NULL;
    const char *problem = where_begin((const Routine *)(uintptr_t)table, (int64_t *)(uintptr_t)area);
    return problem ? PyUnicode_FromString(problem) : Py_NewRef(Py_None);
}

static PyObject *gave_up(PyObject *module, PyObject *nothing) {
    (void)module;
    (void)nothing;
    where_gave_up();
    Py_RETURN_NONE;
}

static PyObject *paused(PyObject *module, PyObject *args) {
    long long from, until;
    (void)module;
    if (!PyArg_ParseTuple(args, "LL", &from, &until)) return NULL;
    where_paused(from, until);
    Py_RETURN_NONE;
}

static PyObject *end(PyObject *module, PyObject *nothing) {
    (void)module;
    (void)nothing;
    where_end();
    Py_RETURN_NONE;
}

PyMethodDef where_functions[] = {
    {"where_begin", begin, METH_VARARGS,
     "Tell where the time goes from now on: functions of SQLite, address of the area. Returns why not, or None."},
    {"where_gave_up", gave_up, METH_NOARGS, "An operation was given up."},
    {"where_paused", paused, METH_VARARGS, "Between these times nothing was tried, so that others get the lock."},
    {"where_end", end, METH_NOARGS, "It is over."},
    {NULL, NULL, 0, NULL},
};
