-- Slurm's cli_filter/lua plugin for walltimed: tells users at sbatch how long such jobs ran.
-- Copy it beside slurm.conf with walltimed.lua, and set CliFilterPlugins=lua. It runs as the user,
-- outside slurmctld. Settings other than the defaults stand in walltimed_cli_config.lua beside it,
-- which users can read, so no token: return { host = "192.0.2.1" }.

local directory = debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or "."
local is_loaded, advise = pcall(function()
  return dofile(directory .. "/walltimed.lua").adviser(directory)
end)

local LONGEST_DAYS = 366 -- Slurm up to 23.02 shows an unset time as 2982616 days

-- Seconds of [days-]hours:minutes:seconds.
local function seconds(time)
  if type(time) ~= "string" then return nil end
  local days, rest = time:match("^(%d+)-(.*)$")
  local hours, minutes, secs = (rest or time):match("^(%d+):(%d+):(%d+)$")
  days = tonumber(days or 0)
  if not hours or days > LONGEST_DAYS then return nil end
  local total = ((days * 24 + hours) * 60 + minutes) * 60 + secs
  return total > 0 and total or nil
end

local function name_in(variable)
  local value = os.getenv(variable)
  return value ~= "" and value or nil
end

-- Slurm 22.05 shows cpus-per-task as 0 where it was not given.
local function at_least_one(count)
  return math.max(1, tonumber(count) or 1)
end

local KIBIBYTES = { [""] = 1024, G = 1024 ^ 2, T = 1024 ^ 3, P = 1024 ^ 4 }

-- KiB of 500 (MiB), 4G, 1T; nil where none was asked for.
local function kibibytes(size)
  local count, unit = tostring(size or ""):match("^([1-9]%d*)([GTP]?)$")
  return count and tonumber(count) * KIBIBYTES[unit]
end

-- KiB per processor, as job_submit.lua says of the same job.
local function memory_of(options, processors)
  local per_core, per_node = kibibytes(options["mem-per-cpu"]), kibibytes(options["mem"])
  local nodes = tonumber(tostring(options["nodes"] or ""):match("^%d+")) or 1
  return per_core or (per_node and per_node * nodes / processors)
end

local function least_nodes(options)
  local nodes = tonumber(tostring(options["nodes"] or ""):match("^%d+")) or 1
  return nodes > 1 and nodes or nil
end

-- sbatch shows a word where --exclusive has none; user and mcs share nodes with the user's own.
local function is_exclusive(options)
  local word = options["exclusive"]
  return (word == "" or word == "exclusive") or nil
end

local function submission_of(options)
  local processors = at_least_one(options["ntasks"]) * at_least_one(options["cpus-per-task"])
  return {
    user = name_in("USER") or name_in("LOGNAME"), -- cron sets the latter only
    project = options["account"],
    queue = options["partition"],
    application = options["job-name"],
    requested_walltime = seconds(options["time"]),
    requested_processors = processors,
    requested_nodes = least_nodes(options),
    exclusive = is_exclusive(options),
    threads_per_core = options["hint"] == "nomultithread" and 1 or nil,
    requested_memory = memory_of(options, processors),
  }
end

local function script_of(path)
  local file = path and io.open(path)
  local found = file and file:read(32768)
  if file then file:close() end
  return found
end

-- What job_submit.lua will see, as far as it is known before.
local function description_of(options)
  local argv = type(options["argv"]) == "table" and options["argv"] or {}
  return {
    comment = options["comment"],
    work_dir = options["chdir"] or name_in("PWD"),
    script = script_of(argv[1]) or options["wrap"] or "",
    submit_line = argv[1] and table.concat(argv, " "),
    qos = options["qos"],
    min_nodes = tonumber(tostring(options["nodes"] or ""):match("^%d+")),
    tres_per_job = options["gpus"],
    tres_per_node = options["gpus-per-node"] or options["gres"],
    tres_per_task = options["gpus-per-task"],
    num_tasks = tonumber(options["ntasks"]),
    array_inx = options["array"],
    features = options["constraint"],
    dependency = options["dependency"],
  }
end

function slurm_cli_setup_defaults(_, _)
  return slurm.SUCCESS
end

function slurm_cli_pre_submit(options, _)
  pcall(function()
    if not is_loaded or os.getenv("WALLTIMED") == "off" then return end
    local submission = submission_of(options)
    local line = submission.requested_walltime and advise(submission, description_of(options))
    if line then slurm.log_info("%s", line) end
  end)
  return slurm.SUCCESS
end

function slurm_cli_post_submit(_, _, _)
  return slurm.SUCCESS
end
