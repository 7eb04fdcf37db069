/* What Python sees of it. */
#define PY_SSIZE_T_CLEAN
#include <stdlib.h>

#include "clock.h"
#include "heap.h"
#include "plan.h"
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

static PyObject *run(PyObject *module, PyObject *asked) {
    (void)module;
    Plan *plan = plan_read(asked);
    if (!plan) return NULL;
    Ending ending;
    heap_keep();
    Py_BEGIN_ALLOW_THREADS
    store_open(&plan->loop.store);
    ending = loop_run(&plan->loop);
    store_close(&plan->loop.store);
    Py_END_ALLOW_THREADS
    PyObject *result = plan_result(plan, ending);
    plan_free(plan);
    return result;
}

/* Draws chunks of the given sizes, and returns them as (kinds, buckets, numbers): for the tests. */
static PyObject *drawn(PyObject *module, PyObject *args) {
    PyObject *asked, *sizes;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO", &asked, &sizes)) return NULL;
    Plan *plan = plan_read(asked);
    if (!plan) return NULL;
    PyObject *chunks = PyList_New(0);
    for (Py_ssize_t i = 0; chunks && i < PyList_Size(sizes); i++) {
        Loop *loop = &plan->loop;
        long size = PyLong_AsLong(PyList_GetItem(sizes, i));
        if (size < 1 || size > loop->largest_chunk) {
            PyErr_SetString(PyExc_ValueError, "no chunk has this size");
            Py_CLEAR(chunks);
            break;
        }
        chunk_draw(&loop->draws, &loop->chunk, (int)size);
        Py_ssize_t count = loop->chunk.count;
        PyObject *one = Py_BuildValue("(y#y#y#)", (const char *)loop->chunk.kinds, count, (const char *)loop->chunk.buckets,
                                      count * (Py_ssize_t)sizeof *loop->chunk.buckets, (const char *)loop->chunk.numbers,
                                      count * loop->draws.mix.width * (Py_ssize_t)sizeof *loop->chunk.numbers);
        if (!one || PyList_Append(chunks, one)) Py_CLEAR(chunks);
        Py_XDECREF(one);
    }
    plan_free(plan);
    return chunks;
}

static PyObject *bucket_of(PyObject *module, PyObject *ns) {
    (void)module;
    int64_t found = PyLong_AsLongLong(ns);
    return PyErr_Occurred() ? NULL : PyLong_FromLong(latency_bucket(found));
}

static PyMethodDef functions[] = {
    {"run", run, METH_O, "Carry out a plan, without the GIL, and return what was done."},
    {"drawn", drawn, METH_VARARGS, "Draw chunks of these sizes by a plan: (kinds, buckets, numbers) of each."},
    {"latency_bucket", bucket_of, METH_O, "The bucket of the histogram in which a latency falls."},
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
