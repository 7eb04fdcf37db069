/* Reads a plan, a dict of what native/plan.py says, into a loop. */
#include "plan.h"

#include <stdlib.h>
#include <string.h>

static PyObject *field(PyObject *asked, const char *name) {
    PyObject *found = PyDict_GetItemString(asked, name);
    if (!found && !PyErr_Occurred()) PyErr_Format(PyExc_KeyError, "%s", name);
    return found;
}

static int64_t integer(PyObject *asked, const char *name) {
    PyObject *found = field(asked, name);
    return found ? PyLong_AsLongLong(found) : -1;
}

static double real(PyObject *asked, const char *name) {
    PyObject *found = field(asked, name);
    return found ? PyFloat_AsDouble(found) : -1;
}

/* Returns the memory of a field, which may be None, and its length in bytes. */
static void *memory(Plan *plan, PyObject *asked, const char *name, int writable, size_t *length) {
    PyObject *found = field(asked, name);
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

static void read_random(Random *random, PyObject *asked, Plan *plan) {
    size_t length = 0;
    const uint32_t *state = memory(plan, asked, "random", 0, &length);
    if (!state || length != (RANDOM_WORDS + 1) * sizeof *state) return;
    memcpy(random->state, state, sizeof random->state);
    random->next = state[RANDOM_WORDS];
}

static void read_draws(Draws *draws, PyObject *asked, Plan *plan) {
    Keys *keys = &draws->keys;
    Placement *placement = &draws->placement;
    draws->mix = (Mix){
        .simple = (int)integer(asked, "simple"),
        .only_reads = (int)integer(asked, "only_reads"),
        .batch = (int)integer(asked, "batch"),
        .width = (int)integer(asked, "batch"),
        .read_ratio = real(asked, "read_ratio"),
        .read_below = (uint32_t)integer(asked, "read_below"),
        .update_below = (uint32_t)integer(asked, "update_below"),
    };
    keys->distribution = (Distribution)integer(asked, "distribution");
    keys->key_space = integer(asked, "key_space");
    keys->position = integer(asked, "position");
    keys->total = real(asked, "total");
    keys->second = real(asked, "second");
    keys->eta = real(asked, "eta");
    keys->alpha = real(asked, "alpha");
    keys->step = integer(asked, "step");
    read_random(&keys->random, asked, plan);
    placement->bucket_of = memory(plan, asked, "bucket_of", 0, NULL);
    placement->order = memory(plan, asked, "order", 0, NULL);
    placement->starts = memory(plan, asked, "starts", 0, NULL);
    placement->pairs = memory(plan, asked, "pairs", 0, NULL);
    draws->sequence = integer(asked, "sequence");
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

static void read_values(Values *values, PyObject *asked, Plan *plan) {
    size_t length = 0;
    values->base = integer(asked, "base");
    values->salt = integer(asked, "salt");
    values->size = integer(asked, "value_size");
    const uint8_t *padding = memory(plan, asked, "padding", 0, &length);
    if (!padding) return;
    values->padding = room(VALUE_HEADER + length, 1);
    if (values->padding) memcpy(values->padding + VALUE_HEADER, padding, length);
}

static void read_waiting(Waiting *waiting, PyObject *asked) {
    waiting->fair = (int)integer(asked, "fair");
    waiting->turn_ns = integer(asked, "turn_ns");
    waiting->mean_ns = integer(asked, "mean_wait_ns");
    waiting->least_ns = integer(asked, "least_wait_ns");
    waiting->timeout_ns = integer(asked, "timeout_ns");
    waiting->jitter = (uint64_t)integer(asked, "jitter") | 1;
}

/* "connections" holds (address of the connection, of its library's functions) by bucket; none: a dry store. */
static void read_connections(Store *store, PyObject *asked) {
    PyObject *connections = field(asked, "connections"), *sql = field(asked, "statements");
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

/* "server" is (address of the connection, of libpq's functions by name, names of the prepared statements,
 * whether batches are in order), or None. */
static void read_server(Store *store, PyObject *asked) {
    PyObject *server = field(asked, "server"), *libpq, *names;
    Server *to = &store->server;
    unsigned long long connection;
    if (!server || server == Py_None) return;
    if (!PyArg_ParseTuple(server, "KOOp", &connection, &libpq, &names, &to->in_order)) return;
#define TAKE(result, name, parameters) to->libpq.name = (result(*) parameters)(uintptr_t)integer(libpq, #name);
    LIBPQ_ROUTINES(TAKE)
#undef TAKE
    Py_ssize_t count = PyList_Size(names);
    to->names = room((size_t)(count < 0 ? 0 : count), sizeof *to->names);
    to->rows = room((size_t)store->batch, sizeof *to->rows);
    for (Py_ssize_t i = 0; to->names && i < count; i++) to->names[i] = PyBytes_AsString(PyList_GetItem(names, i));
    to->connection = (PGconn *)(uintptr_t)connection;
}

static void read_store(Loop *loop, PyObject *asked, Plan *plan) {
    Store *store = &loop->store;
    store->key_type = (KeyType)integer(asked, "key_type");
    store->batch = loop->draws.mix.batch;
    store->reads = integer(asked, "proves") ? &loop->reads : NULL;
    read_values(&store->values, asked, plan);
    read_waiting(&store->waiting, asked);
    read_connections(store, asked);
    read_server(store, asked);
    if (store->count)
        store_over_sqlite(store);
    else if (store->server.connection)
        store_over_postgres(store);
    else
        store_over_nothing(store);
}

static void read_acks(Acks *acks, PyObject *asked, Plan *plan) {
    acks->on = (int)integer(asked, "acknowledges");
    acks->stored = (int)integer(asked, "stores");
    acks->meta = memory(plan, asked, "meta", 1, NULL);
    acks->begins = memory(plan, asked, "begins", 1, NULL);
    acks->ends = memory(plan, asked, "ends", 1, NULL);
    acks->rows = memory(plan, asked, "rows", 1, NULL);
    acks->written = memory(plan, asked, "written", 1, NULL);
    acks->last = memory(plan, asked, "last", 1, NULL);
    acks->counts = memory(plan, asked, "counts", 1, NULL);
    acks->keys = integer(asked, "key_space");
    acks->slots = integer(asked, "slots");
    acks->step = integer(asked, "slot_step");
    acks->worker = (int)integer(asked, "worker");
}

static void read_window(Loop *loop, PyObject *asked, Plan *plan) {
    loop->tally.opens = integer(asked, "opens");
    loop->tally.closes = integer(asked, "closes");
    loop->tally.bin_ns = integer(asked, "bin_ns");
    for (int kind = 0; kind < KINDS; kind++) loop->tally.weights[kind] = 1;
    loop->tally.weights[REPLACE] = loop->draws.mix.batch;
    loop->tally.weights[PAIR] = 2;
    loop->limit = integer(asked, "limit");
    loop->patience_ns = integer(asked, "patience_ns");
    loop->progress = memory(plan, asked, "progress", 1, NULL);
    loop->stop = memory(plan, asked, "stop", 0, NULL);
    if (!tally_open(&loop->tally)) PyErr_NoMemory();
}

Plan *plan_read(PyObject *asked) {
    Plan *plan = room(1, sizeof *plan);
    if (!plan) return NULL;
    Loop *loop = &plan->loop;
    loop->largest_chunk = (int)integer(asked, "largest_chunk");
    read_draws(&loop->draws, asked, plan);
    read_chunk(&loop->chunk, loop);
    read_store(loop, asked, plan);
    read_acks(&loop->acks, asked, plan);
    read_window(loop, asked, plan);
    if (!PyErr_Occurred()) return plan;
    plan_free(plan);
    return NULL;
}

void plan_free(Plan *plan) {
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
    free((void *)loop->store.server.names);
    free(loop->store.server.rows);
    while (plan->viewed) PyBuffer_Release(&plan->views[--plan->viewed]);
    free(plan);
}
