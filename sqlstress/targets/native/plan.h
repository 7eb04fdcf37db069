/* What Python asks for, and what it is told. */
#ifndef SQLSTRESS_PLAN_H
#define SQLSTRESS_PLAN_H

#define Py_LIMITED_API 0x030b0000
#include <Python.h>

#include "loop.h"

#define MOST_VIEWS 16

typedef struct {
    Loop loop;
    Py_buffer views[MOST_VIEWS]; /* memory of Python's, which stays where it is as long as they are held */
    int viewed;
} Plan;

Plan *plan_read(PyObject *asked); /* NULL, with an exception, where something is missing or there is no room */
void plan_free(Plan *plan);
PyObject *plan_result(const Plan *plan, Ending ending);

#endif
