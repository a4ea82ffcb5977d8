/* fast_job RUN: the interpreter of a batch script; ends RUN seconds of the play after the job's
 * start, as Slurm recorded it, so that the launch takes no time from the run. As a job of PBS it
 * ends RUN seconds after its launch.
 *
 * Writes "ID END" to the pipe FAST_CLOCK.pipe, so that the player knows when the job will end. A
 * Slurm before 23.02 does not say when the job started: then "ID ?" is written first, and the
 * player stores the start in the file FAST_CLOCK.start.ID. */
#include <stdio.h>

#include "fast_clock.h"

#define LOOK 0.001   /* real seconds */
#define SOON 0.003   /* real seconds */
#define LONGEST 0.05 /* real seconds */
#define FASTEST 1e4  /* speed of the clock */
#define PATIENCE 20. /* real seconds; without an answer the run begins now */

static const char *job_id(void) {
    const char *id = getenv("SLURM_JOB_ID");
    return id ? id : getenv("PBS_JOBID");
}

static double monotonic(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return seconds_of(&time);
}

static void sleep_real(double seconds) {
    struct timespec time = timespec_of(seconds);
    nanosleep(&time, NULL);
}

static void report(const char *clock, const char *text) {
    char pipe[4096], line[128];
    snprintf(pipe, sizeof pipe, "%s.pipe", clock);
    int length = snprintf(line, sizeof line, "%s %s\n", job_id(), text);
    int file = open(pipe, O_WRONLY | O_NONBLOCK);
    if (file < 0) return;
    if (write(file, line, (size_t)length) < 0) perror(pipe);
    close(file);
}

/* Return the start that the player stores, or 0 after a while. */
static double stored_start(const char *clock) {
    char name[4096];
    double start = 0, began = monotonic();
    snprintf(name, sizeof name, "%s.start.%s", clock, job_id());
    report(clock, "?");
    while (start == 0 && monotonic() < began + PATIENCE) {
        sleep_real(LOOK);
        FILE *file = fopen(name, "r");
        if (!file) continue;
        if (fscanf(file, "%lf", &start) != 1) start = 0;
        fclose(file);
    }
    return start;
}

/* Return the real seconds of the next wait, with some seconds of the play left: the speed may
 * change meanwhile. */
static double next_wait(double left, double speed) {
    double wait = left / speed, safe = left / FASTEST;
    if (safe > SOON) return safe < LONGEST ? safe : LONGEST;
    return wait > SOON ? SOON : wait < 5e-5 ? 5e-5 : wait;
}

int main(int count, char **words) {
    struct fast_clock *shared = map_fast_clock();
    if (count < 2 || !shared || !job_id()) {
        fprintf(stderr, "fast_job RUN, as a batch job of a play\n");
        return 2;
    }
    const char *clock = getenv("FAST_CLOCK"), *given = getenv("SLURM_JOB_START_TIME");
    double launched = fast_time(shared, monotonic());
    double start = launched;
    if (given) start = atof(given);
    else if (!getenv("PBS_JOBID")) start = stored_start(clock);
    if (start == 0) start = launched;
    double end = start + atof(words[1]), left;
    char text[64];
    fprintf(stderr, "launch %.1f\n", launched - start);
    snprintf(text, sizeof text, "%.3f", end);
    report(clock, text);
    while ((left = end - fast_time(shared, monotonic())) > 0) {
        sleep_real(next_wait(left, setting_of(shared).speed));
    }
    return 0;
}
