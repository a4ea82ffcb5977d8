-- Slurm's job_submit/lua plugin for walltimed: copy it beside slurm.conf with walltimed.lua and
-- walltimed_config.lua, and set JobSubmitPlugins=lua. A site with a job_submit.lua of its own takes
-- over the two marked parts.

-- Part 1: load once. A file that is missing or broken leaves every job as it is.
local directory = debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or "."
local is_loaded, submit = pcall(function()
  return dofile(directory .. "/walltimed.lua").submitter(directory)
end)
if not is_loaded then slurm.log_error("walltimed is off: %s", tostring(submit)) end

function slurm_job_submit(job, partitions, _)
  -- Part 2: the only line in the way of a submission.
  if is_loaded then pcall(submit, job, partitions) end
  return slurm.SUCCESS
end

function slurm_job_modify(_, _, _, _)
  return slurm.SUCCESS
end

return slurm.SUCCESS
