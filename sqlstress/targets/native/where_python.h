/* What Python sees of where.h. Includes Python.h, so it comes first. */
#ifndef SQLSTRESS_WHERE_PYTHON_H
#define SQLSTRESS_WHERE_PYTHON_H

#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x030b0000
#endif
#include <Python.h>

extern PyMethodDef where_functions[];

#endif
