/* The clock that all programs of a play share: a mapped file, which the player rewrites in place.
 * The player writes the setting that is not in force, and then lets it be in force: so nobody waits
 * for a player that was interrupted while it wrote.
 *
 * The time is fake + (monotonic - real) * speed, but beyond `until` it crawls: the player renews
 * `until` every few milliseconds, so that the clock nearly stops where the player is held up. It
 * must not stand still, because slurmctld sleeps while it answers. fast_clock.py writes the file. */
#ifndef FAST_CLOCK_H
#define FAST_CLOCK_H

#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define CRAWL 10.0

struct fast_setting {
    double real, fake, speed, until;
};

struct fast_clock {
    volatile unsigned long changes; /* the last bit is the place of the setting in force */
    struct fast_setting settings[2];
};

/* Map the file that FAST_CLOCK names; NULL if there is none. */
static struct fast_clock *map_fast_clock(void) {
    const char *name = getenv("FAST_CLOCK");
    int file = name ? open(name, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return NULL;
    void *page = mmap(NULL, sizeof(struct fast_clock), PROT_READ, MAP_SHARED, file, 0);
    close(file);
    return page == MAP_FAILED ? NULL : page;
}

/* Return the setting in force. */
static struct fast_setting setting_of(const struct fast_clock *clock) {
    unsigned long before;
    struct fast_setting found;
    do {
        before = clock->changes;
        __sync_synchronize();
        found = clock->settings[before & 1];
        __sync_synchronize();
    } while (before != clock->changes);
    return found;
}

/* Return the speed at a time of the clock. */
static inline double speed_at(const struct fast_clock *clock, double now) {
    struct fast_setting found = setting_of(clock);
    return now > found.until && found.speed > CRAWL ? CRAWL : found.speed;
}

/* Return the time of the clock in Unix seconds at a time of CLOCK_MONOTONIC. */
static double fast_time(const struct fast_clock *clock, double monotonic) {
    struct fast_setting found = setting_of(clock);
    double now = found.fake + (monotonic - found.real) * found.speed;
    if (now > found.until && found.speed > CRAWL)
        now = found.until + (now - found.until) / found.speed * CRAWL;
    return now;
}

static double seconds_of(const struct timespec *time) {
    return time->tv_sec + time->tv_nsec * 1e-9;
}

static struct timespec timespec_of(double seconds) {
    struct timespec time = {0, 0};
    if (seconds <= 0) return time;
    time.tv_sec = (time_t)seconds;
    time.tv_nsec = (long)((seconds - (double)time.tv_sec) * 1e9);
    if (time.tv_nsec > 999999999) time.tv_nsec = 999999999;
    return time;
}

#endif
