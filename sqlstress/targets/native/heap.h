#ifndef HEAP_H
#define HEAP_H

void heap_keep(void);

#endif
