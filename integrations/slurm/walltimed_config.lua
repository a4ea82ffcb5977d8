-- Settings of walltimed.lua; all of them and their defaults stand at its top.
-- slurmctld reads this file again when job_submit.lua changes: touch that one after editing.
return {
  mode = "observe",        -- off, observe, advise, order, soft, default-limit
  -- users = { "alice" },  -- begin with the people who asked for it
  -- partitions = { "short" },
  -- token_file = "/etc/walltimed/filter-token", -- readable by SlurmUser
  -- slurm_version = "25.05.4",
}
