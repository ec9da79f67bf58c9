#include "CPeers.h"

#include <cstdlib>
#include <ctime>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

void return_unused_memory(void) {
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
}

void take_fresh_memory(bool fresh) {
#if defined(__GLIBC__)
  mallopt(M_MMAP_THRESHOLD, fresh ? 64 << 10 : 32 << 20);
  mallopt(M_TRIM_THRESHOLD, fresh ? 64 << 10 : 1 << 30);
#else
  (void)fresh;
#endif
}

uint64_t processor_nanoseconds(void) {
  timespec time;
  if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) != 0) return 0;
  return static_cast<uint64_t>(time.tv_sec) * 1000000000 + static_cast<uint64_t>(time.tv_nsec);
}
