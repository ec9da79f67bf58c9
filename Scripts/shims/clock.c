// Turns the date of one process by KEEPSAKE_CLOCK_OFFSET seconds, as if somebody had set the system's clock; the clocks
// that only count the time since the start stay as they are. A test preloads it (TurnedClockTests), Linux only.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

static long offset(void) {
  const char *text = getenv("KEEPSAKE_CLOCK_OFFSET");
  return text ? atol(text) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *result) {
  static int (*original)(clockid_t, struct timespec *);
  if (!original) original = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
  int status = original(clock, result);
  if (status == 0 && clock == CLOCK_REALTIME) result->tv_sec += offset();
  return status;
}

int gettimeofday(struct timeval *result, void *zone) {
  struct timespec now;
  (void)zone;
  int status = clock_gettime(CLOCK_REALTIME, &now);
  if (status == 0 && result) {
    result->tv_sec = now.tv_sec;
    result->tv_usec = now.tv_nsec / 1000;
  }
  return status;
}

time_t time(time_t *result) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (result) *result = now.tv_sec;
  return now.tv_sec;
}
