/* Says what a loop did, as a dict that native/plan.py understands. */
#include "plan.h"

#include <string.h>

/* Puts a value, which may be NULL, under a name, and gives up the reference to it. */
static void put(PyObject *result, const char *name, PyObject *value) {
    if (value && !PyErr_Occurred()) PyDict_SetItemString(result, name, value);
    Py_XDECREF(value);
}

static PyObject *integers(const int64_t *numbers, int count) {
    PyObject *list = PyList_New(count);
    for (int i = 0; list && i < count; i++) PyList_SetItem(list, i, PyLong_FromLongLong(numbers[i]));
    return list;
}

/* {bucket: count} of one kind of operation. */
static PyObject *histogram(const uint64_t *counts) {
    PyObject *found = PyDict_New();
    for (int bucket = 0; found && bucket < LATENCY_BUCKETS; bucket++) {
        if (!counts[bucket]) continue;
        PyObject *key = PyLong_FromLong(bucket), *count = PyLong_FromUnsignedLongLong(counts[bucket]);
        if (key && count) PyDict_SetItem(found, key, count);
        Py_XDECREF(key);
        Py_XDECREF(count);
    }
    return found;
}

static PyObject *histograms(const Tally *tally) {
    PyObject *list = PyList_New(KINDS);
    for (int kind = 0; list && kind < KINDS; kind++)
        PyList_SetItem(list, kind, tally->operations[kind] ? histogram(tally->latencies[kind]) : PyDict_New());
    return list;
}

static PyObject *raw(const Raw *raw) {
    const char *bytes = (const char *)raw->bytes;
    switch (raw->type) {
    case SQLITE_INTEGER:
        return PyLong_FromLongLong(raw->integer);
    case SQLITE_BLOB:
        return PyBytes_FromStringAndSize(bytes, raw->length);
    case SQLITE_NULL:
    case 0:
        Py_INCREF(Py_None);
        return Py_None;
    default:
        return PyUnicode_DecodeUTF8(bytes, raw->length, "replace");
    }
}

static PyObject *bad_reads(const Reads *reads) {
    PyObject *list = PyList_New(reads->bad_kept);
    for (int i = 0; list && i < reads->bad_kept; i++) {
        const BadRead *bad = &reads->bad_examples[i];
        PyList_SetItem(list, i, Py_BuildValue("(LLLN)", (long long)bad->number, (long long)bad->header,
                                              (long long)bad->last, raw(&bad->value)));
    }
    return list;
}

static PyObject *pair_rows(const PairRead *pair) {
    int rows = pair->rows < 2 ? pair->rows : 2;
    PyObject *list = PyList_New(rows);
    for (int i = 0; list && i < rows; i++)
        PyList_SetItem(list, i, Py_BuildValue("(NNL)", raw(&pair->keys[i]), raw(&pair->values[i]),
                                              (long long)pair->headers[i]));
    return list;
}

static PyObject *torn_pairs(const Reads *reads) {
    PyObject *list = PyList_New(reads->torn_kept);
    for (int i = 0; list && i < reads->torn_kept; i++) PyList_SetItem(list, i, pair_rows(&reads->torn_examples[i]));
    return list;
}

static void put_tally(PyObject *result, const Tally *tally) {
    put(result, "first_ns", PyLong_FromLongLong(tally->first));
    put(result, "last_ns", PyLong_FromLongLong(tally->last));
    put(result, "rows", PyLong_FromLongLong(tally->rows));
    put(result, "longest_wait_ns", PyLong_FromLongLong(tally->longest_wait));
    put(result, "failed", PyLong_FromLongLong(tally->failed));
    put(result, "busy", PyLong_FromLongLong(tally->busy));
    put(result, "busy_snapshot", PyLong_FromLongLong(tally->busy_snapshot));
    put(result, "harness_ns", PyLong_FromLongLong(tally->harness));
    put(result, "proof_ns", PyLong_FromLongLong(tally->proof));
    put(result, "operations", integers(tally->operations, KINDS));
    put(result, "largest_ns", integers(tally->largest, KINDS));
    put(result, "bins", integers(tally->bins, tally->bins_used));
    put(result, "buckets", histograms(tally));
}

static void put_reads(PyObject *result, const Reads *reads) {
    put(result, "reads_checked", PyLong_FromLongLong(reads->checked));
    put(result, "bad_reads", PyLong_FromLongLong(reads->bad));
    put(result, "bad_examples", bad_reads(reads));
    put(result, "pairs_checked", PyLong_FromLongLong(reads->pairs));
    put(result, "torn", PyLong_FromLongLong(reads->torn));
    put(result, "torn_examples", torn_pairs(reads));
}

PyObject *plan_result(const Plan *plan, Ending ending) {
    const Loop *loop = &plan->loop;
    PyObject *result = PyDict_New();
    if (!result) return NULL;
    put(result, "ending", PyLong_FromLong(ending));
    put(result, "code", PyLong_FromLong(loop->code));
    put(result, "said", PyUnicode_DecodeUTF8(loop->store.said, (Py_ssize_t)strlen(loop->store.said), "replace"));
    put(result, "given_up", PyLong_FromLongLong(loop->given_up));
    put(result, "sequence", PyLong_FromLongLong(loop->draws.sequence));
    put(result, "position", PyLong_FromLongLong(loop->draws.keys.position));
    put(result, "random", PyBytes_FromStringAndSize((const char *)&loop->draws.keys.random, sizeof(Random)));
    put_tally(result, &loop->tally);
    put_reads(result, &loop->reads);
    if (PyErr_Occurred()) Py_CLEAR(result);
    return result;
}
