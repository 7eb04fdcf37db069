/* What Python sees of it. */
#define Py_LIMITED_API 0x030b0000
#include <Python.h>

#include <stdlib.h>

#include "clock.h"
#include "sqlite.h"
#include "where_python.h"

static PyObject *now_ns(PyObject *module, PyObject *nothing) {
    (void)module;
    (void)nothing;
    return PyLong_FromLongLong(clock_ns());
}

static PyObject *handed_over(PyObject *module, PyObject *nothing) {
    Handed *list;
    int count = handed_take(&list);
    (void)module;
    (void)nothing;
    PyObject *found = count < 0 ? PyErr_NoMemory() : PyList_New(0);
    for (int i = 0; found && i < count; i++) {
        PyObject *one = Py_BuildValue("(KK)", (unsigned long long)(uintptr_t)list[i].db,
                                      (unsigned long long)(uintptr_t)list[i].table);
        if (!one || PyList_Append(found, one)) Py_CLEAR(found);
        Py_XDECREF(one);
    }
    free(list);
    return found;
}

static PyObject *version_number(PyObject *module, PyObject *args) {
    unsigned long long table;
    Sqlite sqlite;
    (void)module;
    if (!PyArg_ParseTuple(args, "K", &table)) return NULL;
    sqlite_take(&sqlite, (const Routine *)(uintptr_t)table);
    return PyLong_FromLong(sqlite.libversion_number());
}

static PyMethodDef functions[] = {
    {"now_ns", now_ns, METH_NOARGS, "The shared clock."},
    {"handed_over", handed_over, METH_NOARGS,
     "The connections opened since the last call, as (address of the connection, of its SQLite's functions)."},
    {"version_number", version_number, METH_VARARGS, "The version of the SQLite whose functions lie there."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "_native", .m_doc = "The timed loop.", .m_size = -1, .m_methods = functions};

PyMODINIT_FUNC PyInit__native(void) {
    PyObject *module = PyModule_Create(&definition);
    if (module && PyModule_AddFunctions(module, where_functions) < 0) Py_CLEAR(module);
    return module;
}
