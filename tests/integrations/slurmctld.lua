-- Plays slurmctld for job_submit.lua and cli_filter.lua: arg[1] is the script, arg[2] a Lua file
-- that returns the jobs. Prints, for each job, what the hook changed and how long it took.
local socket = require("socket")
slurm = { SUCCESS = 0, ERROR = -1 }
for _, level in ipairs({ "log_error", "log_user", "log_info" }) do
  slurm[level] = function(format, ...) print(level .. "\t" .. format:format(...)) end
end

assert(dofile(arg[1]) == slurm.SUCCESS or slurm_cli_pre_submit)
local partitions = {
  short = { name = "short", flag_default = 1, default_time = 10, max_time = 60 },
  middle = { name = "middle", flag_default = 0, default_time = 4294967294, max_time = 30 },
  bare = { name = "bare", flag_default = 0, max_time = 20 },
  long = { name = "long", flag_default = 0, default_time = 4294967294, max_time = 4294967295 },
}
for _, job in ipairs(dofile(arg[2])) do
  local changes = {}
  local seen = setmetatable({}, {
    __index = job,
    __newindex = function(_, key, value) changes[#changes + 1] = { key, value } end,
  })
  local hook = slurm_job_submit or slurm_cli_pre_submit
  local begin = socket.gettime()
  local result = hook(seen, slurm_job_submit and partitions or 0, 1000)
  local took = socket.gettime() - begin
  for _, change in ipairs(changes) do print("set\t" .. change[1] .. "\t" .. tostring(change[2])) end
  print(("done\t%d\t%.4f"):format(result, took))
end
