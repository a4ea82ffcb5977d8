-- Settings of walltimed.lua; all of them and their defaults stand at its top. What `walltimed connect`
-- sets (mode, host, port) stands in walltimed_site.json, which is read after this file and wins.
-- slurmctld reads this file again when job_submit.lua changes: touch that one after editing.
return {
  -- users = { "alice" },  -- begin with the people who asked for it
  -- partitions = { "short" },
  -- token_file = "/etc/walltimed/filter-token", -- readable by SlurmUser
  -- slurm_version = "25.05.4",
}
