/* The Python module: it converts a plan (a dict of all parameters) into a loop, and the results of the loop into a
 * dict. */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>

#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "loop.h"
#include "pauses.h"
#include "where.h"

#define MOST_VIEWS 20

typedef struct {
    Loop loop;
    Py_buffer views[MOST_VIEWS]; /* memory of Python objects, which is not moved or freed as long as the views exist */
    int viewed;
} Plan;

/* Conversion of a plan, a dict that kv/native_loop.py makes, into a loop. */

static PyObject *field(PyObject *given, const char *name) {
    PyObject *found = PyDict_GetItemString(given, name);
    if (!found && !PyErr_Occurred()) PyErr_Format(PyExc_KeyError, "%s", name);
    return found;
}

static int64_t integer(PyObject *given, const char *name) {
    PyObject *found = field(given, name);
    return found ? PyLong_AsLongLong(found) : -1;
}

static double real(PyObject *given, const char *name) {
    PyObject *found = field(given, name);
    return found ? PyFloat_AsDouble(found) : -1;
}

/* Return the memory of a field, and its length in bytes in *length; NULL if the field is None. */
static void *memory(Plan *plan, PyObject *given, const char *name, int writable, size_t *length) {
    PyObject *found = field(given, name);
    Py_buffer *view = &plan->views[plan->viewed];
    if (!found || found == Py_None) return NULL;
    if (PyObject_GetBuffer(found, view, writable ? PyBUF_WRITABLE : PyBUF_SIMPLE)) return NULL;
    plan->viewed++;
    if (length) *length = (size_t)view->len;
    return view->buf;
}

static void *room(size_t count, size_t size) {
    void *made = calloc(count ? count : 1, size);
    if (!made) PyErr_NoMemory();
    return made;
}

static void read_random(Random *random, PyObject *given, Plan *plan) {
    size_t length = 0;
    const uint32_t *state = memory(plan, given, "random", 0, &length);
    if (!state || length != (RANDOM_WORDS + 1) * sizeof *state) return;
    memcpy(random->state, state, sizeof random->state);
    random->next = state[RANDOM_WORDS];
}

static void read_draws(Draws *draws, PyObject *given, Plan *plan) {
    Keys *keys = &draws->keys;
    Placement *placement = &draws->placement;
    draws->mix = (Mix){
        .simple = (int)integer(given, "simple"),
        .only_reads = (int)integer(given, "only_reads"),
        .batch = (int)integer(given, "batch"),
        .width = (int)integer(given, "batch"),
        .read_ratio = real(given, "read_ratio"),
        .read_below = (uint32_t)integer(given, "read_below"),
        .update_below = (uint32_t)integer(given, "update_below"),
    };
    keys->distribution = (Distribution)integer(given, "distribution");
    keys->key_space = integer(given, "key_space");
    keys->position = integer(given, "position");
    keys->total = real(given, "total");
    keys->second = real(given, "second");
    keys->eta = real(given, "eta");
    keys->alpha = real(given, "alpha");
    keys->step = integer(given, "step");
    read_random(&keys->random, given, plan);
    placement->bucket_of = memory(plan, given, "bucket_of", 0, NULL);
    placement->order = memory(plan, given, "order", 0, NULL);
    placement->starts = memory(plan, given, "starts", 0, NULL);
    placement->pairs = memory(plan, given, "pairs", 0, NULL);
    draws->sequence = integer(given, "sequence");
    draws->spare = room((size_t)draws->mix.batch, sizeof *draws->spare);
    draws->taken = room((size_t)(keys->key_space / 16 + 1), 1);
}

static void read_chunk(Chunk *chunk, const Loop *loop) {
    size_t count = (size_t)loop->largest_chunk;
    chunk->kinds = room(count, sizeof *chunk->kinds);
    chunk->drawn = room(count, sizeof *chunk->drawn);
    chunk->buckets = room(count, sizeof *chunk->buckets);
    chunk->headers = room(count, sizeof *chunk->headers);
    chunk->numbers = room(count * (size_t)loop->draws.mix.width, sizeof *chunk->numbers);
}

static void read_values(Values *values, PyObject *given, Plan *plan) {
    size_t length = 0;
    values->base = integer(given, "base");
    values->salt = integer(given, "salt");
    values->size = integer(given, "value_size");
    const uint8_t *padding = memory(plan, given, "padding", 0, &length);
    if (!padding) return;
    values->padding = room(VALUE_HEADER + length, 1);
    if (values->padding) memcpy(values->padding + VALUE_HEADER, padding, length);
}

static void read_waiting(Waiting *waiting, PyObject *given) {
    waiting->mean_ns = integer(given, "mean_wait_ns");
    waiting->least_ns = integer(given, "least_wait_ns");
    waiting->timeout_ns = integer(given, "timeout_ns");
    waiting->jitter = (uint64_t)integer(given, "jitter") | 1;
}

/* "connections" has, for each bucket, the addresses of its connection and of the table of SQLite's functions. It is
 * empty for a store that does nothing. */
static void read_connections(Store *store, PyObject *given) {
    PyObject *connections = field(given, "connections"), *sql = field(given, "statements");
    if (!connections || !sql) return;
    store->count = (int)PyList_Size(connections);
    if (store->count <= 0) return;
    store->buckets = room((size_t)store->count, sizeof *store->buckets);
    for (int i = 0; store->buckets && i < store->count; i++) {
        unsigned long long db, table;
        if (!PyArg_ParseTuple(PyList_GetItem(connections, i), "KK", &db, &table)) return;
        store->buckets[i].db = (sqlite3 *)(uintptr_t)db;
        sqlite_take(&store->sqlite, (const Routine *)(uintptr_t)table);
    }
    for (int which = 0; which < SQLS; which++) {
        PyObject *text = PyTuple_GetItem(sql, which);
        if (!text) return;
        store->sql[which] = PyUnicode_AsUTF8AndSize(text, NULL);
    }
}

static void read_store(Loop *loop, PyObject *given, Plan *plan) {
    Store *store = &loop->store;
    store->key_type = (KeyType)integer(given, "key_type");
    store->batch = loop->draws.mix.batch;
    store->reads = integer(given, "proves") ? &loop->reads : NULL;
    read_values(&store->values, given, plan);
    read_waiting(&store->waiting, given);
    read_connections(store, given);
    if (store->count)
        store_over_sqlite(store);
    else
        store_over_nothing(store);
}

static void read_acks(Acks *acks, PyObject *given, Plan *plan) {
    acks->on = (int)integer(given, "acknowledges");
    acks->stored = (int)integer(given, "stores");
    acks->meta = memory(plan, given, "meta", 1, NULL);
    acks->begins = memory(plan, given, "begins", 1, NULL);
    acks->ends = memory(plan, given, "ends", 1, NULL);
    acks->rows = memory(plan, given, "rows", 1, NULL);
    acks->written = memory(plan, given, "written", 1, NULL);
    acks->last = memory(plan, given, "last", 1, NULL);
    acks->counts = memory(plan, given, "counts", 1, NULL);
    acks->keys = integer(given, "key_space");
    acks->slots = integer(given, "slots");
    acks->step = integer(given, "slot_step");
    acks->worker = (int)integer(given, "worker");
    acks->workers = (int)integer(given, "workers");
    acks->lasts = memory(plan, given, "lasts", 0, NULL);
    acks->stride = integer(given, "stride");
}

static void read_window(Loop *loop, PyObject *given, Plan *plan) {
    loop->tally.opens = integer(given, "opens");
    loop->tally.closes = integer(given, "closes");
    loop->tally.bin_ns = integer(given, "bin_ns");
    for (int kind = 0; kind < KINDS; kind++) loop->tally.weights[kind] = 1;
    loop->tally.weights[REPLACE] = loop->draws.mix.batch;
    loop->tally.weights[PAIR] = 2;
    loop->limit = integer(given, "limit");
    loop->patience_ns = integer(given, "patience_ns");
    loop->progress = memory(plan, given, "progress", 1, NULL);
    loop->stop = memory(plan, given, "stop", 0, NULL);
    if (!tally_open(&loop->tally)) PyErr_NoMemory();
}

static void plan_free(Plan *plan) {
    Loop *loop = &plan->loop;
    tally_close(&loop->tally);
    free(loop->draws.spare);
    free(loop->draws.taken);
    free(loop->chunk.kinds);
    free(loop->chunk.drawn);
    free(loop->chunk.buckets);
    free(loop->chunk.headers);
    free(loop->chunk.numbers);
    free(loop->store.values.padding);
    free(loop->store.buckets);
    while (plan->viewed) PyBuffer_Release(&plan->views[--plan->viewed]);
    free(plan);
}

static Plan *plan_read(PyObject *given) {
    Plan *plan = room(1, sizeof *plan);
    if (!plan) return NULL;
    Loop *loop = &plan->loop;
    loop->largest_chunk = (int)integer(given, "largest_chunk");
    read_draws(&loop->draws, given, plan);
    read_chunk(&loop->chunk, loop);
    read_store(loop, given, plan);
    read_acks(&loop->acks, given, plan);
    read_window(loop, given, plan);
    if (!PyErr_Occurred()) return plan;
    plan_free(plan);
    return NULL;
}

/* Conversion of the results of a loop into a dict for kv/native_loop.py. */

/* Store a value under a name, unless it is NULL, and drop the reference to the value. */
static void put(PyObject *result, const char *name, PyObject *value) {
    if (value && !PyErr_Occurred()) PyDict_SetItemString(result, name, value);
    Py_XDECREF(value);
}

static PyObject *integers(const int64_t *numbers, int count) {
    PyObject *list = PyList_New(count);
    for (int i = 0; list && i < count; i++) PyList_SetItem(list, i, PyLong_FromLongLong(numbers[i]));
    return list;
}

/* Return the histogram of one kind of operation as {bin: count}. */
static PyObject *histogram(const uint64_t *counts) {
    PyObject *found = PyDict_New();
    for (int bin = 0; found && bin < LATENCY_BINS; bin++) {
        if (!counts[bin]) continue;
        PyObject *key = PyLong_FromLong(bin), *count = PyLong_FromUnsignedLongLong(counts[bin]);
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
    put(result, "failed_buckets", tally->failed ? histogram(tally->failures) : PyDict_New());
    put(result, "largest_failed_ns", PyLong_FromLongLong(tally->largest_failed));
}

static void put_reads(PyObject *result, const Reads *reads) {
    put(result, "reads_checked", PyLong_FromLongLong(reads->checked));
    put(result, "bad_reads", PyLong_FromLongLong(reads->bad));
    put(result, "bad_examples", bad_reads(reads));
    put(result, "pairs_checked", PyLong_FromLongLong(reads->pairs));
    put(result, "torn", PyLong_FromLongLong(reads->torn));
    put(result, "torn_examples", torn_pairs(reads));
}

static PyObject *refusals(const Store *store) {
    PyObject *list = PyList_New(store->refusal_count);
    for (int i = 0; list && i < store->refusal_count; i++) {
        const Refusal *refusal = &store->refusals[i];
        int kept = refusal->count < MOST_WAITS ? (int)refusal->count : MOST_WAITS;
        PyList_SetItem(list, i, Py_BuildValue("(iOiLNL)", (int)refusal->sql, refusal->in_transaction ? Py_True : Py_False,
                                              refusal->code, (long long)refusal->count, integers(refusal->waits, kept),
                                              (long long)refusal->longest));
    }
    return list;
}

static PyObject *plan_result(const Plan *plan, Ending ending) {
    const Loop *loop = &plan->loop;
    PyObject *result = PyDict_New();
    if (!result) return NULL;
    put(result, "ending", PyLong_FromLong(ending));
    put(result, "code", PyLong_FromLong(loop->code));
    put(result, "said", PyUnicode_DecodeUTF8(loop->store.said, (Py_ssize_t)strlen(loop->store.said), "replace"));
    put(result, "given_up", PyLong_FromLongLong(loop->given_up));
    put(result, "refusals", refusals(&loop->store));
    put(result, "sequence", PyLong_FromLongLong(loop->draws.sequence));
    put(result, "position", PyLong_FromLongLong(loop->draws.keys.position));
    put(result, "random", PyBytes_FromStringAndSize((const char *)&loop->draws.keys.random, sizeof(Random)));
    put_tally(result, &loop->tally);
    put_reads(result, &loop->reads);
    if (PyErr_Occurred()) Py_CLEAR(result);
    return result;
}

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

static PyObject *end(PyObject *module, PyObject *nothing) {
    (void)module;
    (void)nothing;
    where_end();
    Py_RETURN_NONE;
}

static PyObject *begin_pauses(PyObject *module, PyObject *args) {
    unsigned long long table;
    Py_buffer schedule;
    (void)module;
    if (!PyArg_ParseTuple(args, "Ky*", &table, &schedule)) return NULL;
    const char *problem = pauses_begin((const Routine *)(uintptr_t)table, schedule.buf, (size_t)schedule.len);
    PyBuffer_Release(&schedule);
    return problem ? PyUnicode_FromString(problem) : Py_NewRef(Py_None);
}

static PyObject *count_pauses(PyObject *module, PyObject *nothing) {
    (void)module;
    (void)nothing;
    return PyLong_FromLongLong(pauses_made());
}

static PyMethodDef shim_functions[] = {
    {"where_begin", begin, METH_VARARGS,
     "Start recording: address of SQLite's functions, address of the area. Return the reason for failure or None."},
    {"where_gave_up", gave_up, METH_NOARGS, "Record that an operation failed with BUSY."},
    {"where_end", end, METH_NOARGS, "End the recording of time."},
    {"pauses_begin", begin_pauses, METH_VARARGS,
     "Start pauses: address of SQLite's functions, schedule. Return the reason for failure or None."},
    {"pauses_made", count_pauses, METH_NOARGS, "Return the number of pauses that this process has made."},
    {NULL, NULL, 0, NULL},
};

/* Functions of the module for the clock, the connections, the loop and the check of all rows. */

static PyObject *now_ns(PyObject *module, PyObject *nothing) {
    (void)module;
    (void)nothing;
    return PyLong_FromLongLong(clock_ns());
}

static PyObject *handed_over(PyObject *module, PyObject *nothing) {
    const Handed *list;
    int count = handed_take(&list);
    (void)module;
    (void)nothing;
    PyObject *found = PyList_New(0);
    for (int i = 0; found && i < count; i++) {
        PyObject *one = Py_BuildValue("(KK)", (unsigned long long)(uintptr_t)list[i].db,
                                      (unsigned long long)(uintptr_t)list[i].table);
        if (!one || PyList_Append(found, one)) Py_CLEAR(found);
        Py_XDECREF(one);
    }
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

static PyObject *run(PyObject *module, PyObject *given) {
    (void)module;
    Plan *plan = plan_read(given);
    if (!plan) return NULL;
    Ending ending;
    heap_keep();
    Py_BEGIN_ALLOW_THREADS
    ending = loop_run(&plan->loop);
    store_close(&plan->loop.store);
    Py_END_ALLOW_THREADS
    PyObject *result = plan_result(plan, ending);
    plan_free(plan);
    return result;
}

/* Draw chunks of the given sizes; return them as (kinds, buckets, numbers). Only tests use this function. */
static PyObject *drawn(PyObject *module, PyObject *args) {
    PyObject *given, *sizes;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO", &given, &sizes)) return NULL;
    Plan *plan = plan_read(given);
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

static PyObject *histogram_bin(PyObject *module, PyObject *ns) {
    (void)module;
    int64_t found = PyLong_AsLongLong(ns);
    return PyErr_Occurred() ? NULL : PyLong_FromLong(latency_bin(found));
}

static void read_proof(Proof *proof, PyObject *given, Plan *plan) {
    proof->key_type = (KeyType)integer(given, "key_type");
    proof->bucket_of = memory(plan, given, "bucket_of", 0, NULL);
    proof->values.salt = integer(given, "salt");
    proof->values.size = integer(given, "value_size");
    proof->paddings = memory(plan, given, "paddings", 0, NULL);
    proof->acks.keys = integer(given, "key_space");
    proof->acks.slots = integer(given, "slots");
    proof->acks.step = integer(given, "slot_step");
    proof->acks.workers = (int)integer(given, "workers");
    proof->acks.lasts = memory(plan, given, "lasts", 0, NULL);
    proof->acks.stride = integer(given, "stride");
    proof->seen = memory(plan, given, "seen", 1, NULL);
}

/* Return the number of rows of all buckets if all rows are right; -1 if a row is wrong or the check failed. */
static PyObject *proved(PyObject *module, PyObject *given) {
    Plan *plan = room(1, sizeof *plan);
    Proof proof = {0};
    int64_t count = 0, rows = 0;
    (void)module;
    if (!plan) return NULL;
    read_proof(&proof, given, plan);
    read_connections(&plan->loop.store, given);
    const Store *store = &plan->loop.store;
    if (!PyErr_Occurred()) {
        proof.sqlite = store->sqlite;
        Py_BEGIN_ALLOW_THREADS
        if (!proof_begin(&proof)) rows = -1;
        for (int bucket = 0; rows >= 0 && bucket < store->count; bucket++, count += rows)
            rows = proof_rows(&proof, store->buckets[bucket].db, bucket, store->sql[SQL_GET]);
        proof_end(&proof);
        Py_END_ALLOW_THREADS
    }
    plan_free(plan);
    return PyErr_Occurred() ? NULL : PyLong_FromLongLong(rows < 0 ? -1 : count);
}

static PyMethodDef functions[] = {
    {"run", run, METH_O, "Run the loop by a plan, without the GIL; return its results."},
    {"drawn", drawn, METH_VARARGS, "Draw chunks of these sizes by a plan; return (kinds, buckets, numbers) of each."},
    {"proved", proved, METH_O, "Check all rows by a plan; return their number if all are right, else -1."},
    {"latency_bin", histogram_bin, METH_O, "Return the bin of the histogram for a latency in ns."},
    {"now_ns", now_ns, METH_NOARGS, "Return the time of the clock that all processes share, in ns."},
    {"handed_over", handed_over, METH_NOARGS,
     "Return the connections opened since the last call: (its address, address of its SQLite's functions)."},
    {"version_number", version_number, METH_VARARGS,
     "Return the version of SQLite as a number: address of its functions."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "_native", .m_doc = "The timed loop in C.", .m_size = -1, .m_methods = functions};

PyMODINIT_FUNC PyInit__native(void) {
    PyObject *module = PyModule_Create(&definition);
    if (module && PyModule_AddFunctions(module, shim_functions) < 0) Py_CLEAR(module);
    return module;
}
