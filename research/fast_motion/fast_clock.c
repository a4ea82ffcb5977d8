/* fast_clock.so: with LD_PRELOAD and FAST_CLOCK=FILE a program lives by the clock of a play.
 *
 * Faked: CLOCK_REALTIME, _COARSE and TAI, time, gettimeofday, sleeps, pthread_cond_timedwait,
 * sem_timedwait, timers. Real: CLOCK_MONOTONIC, poll, select, epoll, so that time-outs of sockets
 * are real ones; but with FAST_CLOCK_EPOLL set epoll_pwait is faked, in which daemons of PBS wait
 * for their next task. Waits are cut into pieces of FAST_CLOCK_PIECE real seconds, because the speed
 * may change while a program waits. Waits for a signal take FAST_CLOCK_SHORTEST real seconds at
 * least. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/time.h>

#include "fast_clock.h"

#define SHORTEST 5e-5 /* real seconds of a wait */

static struct fast_clock *shared;
static struct fast_clock plain = {0, {{0, 0, 1, 1e18}}}; /* without FAST_CLOCK: the real time */
static double piece = 0.02, shortest = SHORTEST;
static int fakes_epoll;
static int (*real_gettime)(clockid_t, struct timespec *);
static int (*real_sleep)(clockid_t, int, const struct timespec *, struct timespec *);
static int (*real_cond_wait)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
static int (*real_sem_wait)(sem_t *, const struct timespec *);
static int (*real_epoll_pwait)(int, struct epoll_event *, int, int, const sigset_t *);
static int (*real_timer_create)(clockid_t, struct sigevent *, timer_t *);
static int (*real_timer_set)(timer_t, int, const struct itimerspec *, struct itimerspec *);

static void __attribute__((constructor)) begin(void) {
    if (shared) return;
    real_gettime = dlsym(RTLD_NEXT, "clock_gettime");
    real_sleep = dlsym(RTLD_NEXT, "clock_nanosleep");
    /* On x86-64 dlsym alone may find a version for older programs. */
    real_cond_wait = dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
    if (!real_cond_wait) real_cond_wait = dlsym(RTLD_NEXT, "pthread_cond_timedwait");
    real_sem_wait = dlsym(RTLD_NEXT, "sem_timedwait");
    real_epoll_pwait = dlsym(RTLD_NEXT, "epoll_pwait");
    real_timer_create = dlsym(RTLD_NEXT, "timer_create");
    real_timer_set = dlsym(RTLD_NEXT, "timer_settime");
    const char *given = getenv("FAST_CLOCK_PIECE");
    if (given) piece = atof(given);
    given = getenv("FAST_CLOCK_SHORTEST");
    if (given) shortest = atof(given);
    fakes_epoll = getenv("FAST_CLOCK_EPOLL") != NULL;
    struct fast_clock *found = map_fast_clock();
    if (!found) { /* both clocks go at one speed */
        struct timespec wall, monotonic;
        real_gettime(CLOCK_REALTIME, &wall);
        real_gettime(CLOCK_MONOTONIC, &monotonic);
        plain.settings[0].fake = seconds_of(&wall);
        plain.settings[0].real = seconds_of(&monotonic);
    }
    shared = found ? found : &plain;
}

static double now(void) {
    struct timespec monotonic;
    if (!shared) begin();
    real_gettime(CLOCK_MONOTONIC, &monotonic);
    return fast_time(shared, seconds_of(&monotonic));
}

static int is_faked(clockid_t clock) {
    return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_TAI;
}

/* Return the real seconds of the next wait for a time of the clock, 0 if it has come. */
static double next_wait(double until) {
    double shown = now(), wait = (until - shown) / speed_at(shared, shown);
    if (wait <= 0) return 0;
    if (wait < SHORTEST) return SHORTEST;
    return wait < piece ? wait : piece;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    if (!shared) begin();
    if (!is_faked(clock)) return real_gettime(clock, time);
    *time = timespec_of(now());
    return 0;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
    struct timespec faked = timespec_of(now());
    (void)zone;
    time->tv_sec = faked.tv_sec;
    time->tv_usec = faked.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *stored) {
    time_t seconds = (time_t)now();
    if (stored) *stored = seconds;
    return seconds;
}

/* Sleep until a time of the clock; return an error number, EINTR with the time that was left. */
static int sleep_until(double until, struct timespec *left) {
    double wait;
    while ((wait = next_wait(until)) > 0) {
        struct timespec real = timespec_of(wait);
        int error = real_sleep(CLOCK_MONOTONIC, 0, &real, NULL);
        if (error) {
            if (left) *left = timespec_of(until - now());
            return error;
        }
    }
    return 0;
}

static int with_errno(int error) {
    if (!error) return 0;
    errno = error;
    return -1;
}

int nanosleep(const struct timespec *time, struct timespec *left) {
    return with_errno(sleep_until(now() + seconds_of(time), left));
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *time,
                    struct timespec *left) {
    if (!shared) begin();
    if (!(flags & TIMER_ABSTIME)) return sleep_until(now() + seconds_of(time), left);
    if (!is_faked(clock)) return real_sleep(clock, flags, time, left);
    return sleep_until(seconds_of(time), NULL);
}

int usleep(useconds_t microseconds) {
    return with_errno(sleep_until(now() + microseconds * 1e-6, NULL));
}

unsigned int sleep(unsigned int seconds) {
    struct timespec left = {0, 0};
    if (!sleep_until(now() + seconds, &left)) return 0;
    return (unsigned int)(left.tv_sec + (left.tv_nsec > 0));
}

/* Return the real time of day at which the next wait for a time of the clock ends. */
static struct timespec end_of_wait(double until) {
    struct timespec wall;
    double wait = next_wait(until);
    if (wait > 0 && wait < shortest) wait = shortest;
    real_gettime(CLOCK_REALTIME, &wall);
    return timespec_of(seconds_of(&wall) + wait);
}

int pthread_cond_timedwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex,
                           const struct timespec *restrict time) {
    double until = seconds_of(time);
    for (;;) {
        struct timespec real = end_of_wait(until);
        int error = real_cond_wait(condition, mutex, &real);
        if (error != ETIMEDOUT || now() >= until) return error;
    }
}

int sem_timedwait(sem_t *restrict semaphore, const struct timespec *restrict time) {
    double until = seconds_of(time);
    for (;;) {
        struct timespec real = end_of_wait(until);
        if (!real_sem_wait(semaphore, &real)) return 0;
        if (errno != ETIMEDOUT || now() >= until) return -1;
    }
}

int epoll_pwait(int file, struct epoll_event *events, int most, int timeout, const sigset_t *mask) {
    if (!shared) begin();
    if (timeout <= 0 || !fakes_epoll) return real_epoll_pwait(file, events, most, timeout, mask);
    double until = now() + timeout * 1e-3;
    for (;;) {
        double wait = next_wait(until);
        int found = real_epoll_pwait(file, events, most, (int)(wait * 1e3 + 0.999), mask);
        if (found || wait == 0) return found;
    }
}

int timer_create(clockid_t clock, struct sigevent *restrict event, timer_t *restrict timer) {
    if (!shared) begin();
    return real_timer_create(is_faked(clock) ? CLOCK_MONOTONIC : clock, event, timer);
}

/* A timer is set by the present speed: what it wakes looks at the clock again. */
int timer_settime(timer_t timer, int flags, const struct itimerspec *restrict wanted,
                  struct itimerspec *restrict before) {
    struct itimerspec real = {{0, 0}, {0, 0}};
    double first = seconds_of(&wanted->it_value);
    if (!shared) begin();
    if (first > 0) {
        if (flags & TIMER_ABSTIME) first -= now();
        first /= setting_of(shared).speed;
        real.it_value = timespec_of(first < 1e-6 ? 1e-6 : first);
    }
    real.it_interval = timespec_of(seconds_of(&wanted->it_interval) / setting_of(shared).speed);
    return real_timer_set(timer, flags & ~TIMER_ABSTIME, &real, before);
}
