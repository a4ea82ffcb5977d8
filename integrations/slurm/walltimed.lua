-- Asks walltimed how long a job will run. Runs inside slurmctld (job_submit.lua), under its locks,
-- and inside sbatch (cli_filter.lua). Lua 5.1 to 5.4; needs luasocket (lua-socket) and nothing else.
--
-- Whatever goes wrong, the job passes unchanged: one exchange within a total budget, a pause after
-- a failure, no error ever leaves this file (Slurm from 26.05 rejects a job whose script raised one).

local OFF = "/etc/walltimed/walltimed.off" -- made by `walltimed connect --off`: no job is touched
local DEFAULTS = {
  mode = "observe",        -- off, observe, advise, order, soft, default-limit: see docs/slurm.md
  host = "127.0.0.1",      -- an address, never a name: looking one up has no time limit
  port = 8580,
  unix_socket = nil,       -- "/run/walltimed/walltimed.sock" instead of host and port
  token_file = "/etc/walltimed/filter-token", -- of scope predict; without the file no token is sent
  munge = nil,             -- of cli_filter.lua: the command munge, which says who the user is
  cluster = nil,           -- ClusterName of the slurm.conf beside this file
  budget_ms = 200,         -- for the whole exchange, connecting included
  pause_seconds = 15,      -- without a call after a failure
  users = nil, accounts = nil, partitions = nil, -- lists; nil means all
  limit_margin = 1.5,      -- default-limit kills: times the upper end of the interval,
  limit_coverage = 0.9,    -- which must hold at least this share of runtimes
  soft_floor_seconds = 60, -- a shorter prediction counts as this: the scheduler plans in minutes
  order = "sjf-aging",     -- of mode order; response-ratio: with `slurm-updater --order response-ratio`
  ratio = "14400,600,43200", -- of response-ratio, as the updater's --ratio
  largest_site_factor = nil, -- of mode order; nil: by slurm.conf (docs/slurm.md); 0: none
  facts = true,            -- whether script, directory, GPUs, … are told: docs/api.md
  features = nil,          -- function(job) of up to eight numbers or words by name; nil: by comment
  opt_out = "walltimed=off", -- jobs with this in their comment are left alone
  slurm_version = nil,     -- as `sinfo --version` says; mode soft needs it, at least 25.05.4
}
local SHORTEST_LIMIT = 60  -- seconds
local FEWEST_RUNS = 5      -- of the user's: with fewer no interval is known to have held for them
local LADDER = { off = 0, observe = 1, advise = 2, order = 3, soft = 4, ["default-limit"] = 5 }
local LENGTH_FACTOR, MOST_PRECEDENCE = 4, 86400 -- the order sjf-aging, as a backtest plays it
local GROWTH, MOST_STEPS = 1.05, 200 -- steps of factors of the order response-ratio
local USUAL_FACTOR = 10000
local OTHER_WEIGHTS = { -- beside which the ratio counts as much as they do together
  "priorityweightfairshare", "priorityweightjobsize", "priorityweightpartition",
}
local LONGEST_AGE = 7 * 86400 -- Slurm's default of PriorityMaxAge, in seconds
local NO_VAL, INFINITE, NO_VAL16 = 4294967294, 4294967295, 65534
local MOST_THREADS = 1024 -- of a core
local LONGEST_NAME, LONGEST_ID = 255, 64
local LONGEST_LINE, LONGEST_SCRIPT = 4096, 32768 -- bytes; of a script the first count
local MOST_FEATURES = 8
local HASH_MODULUS = 35184372088777 -- 2 ^ 45 - 55
local LARGEST_HEAD, LARGEST_ANSWER, PIECE = 8192, 65536, 8192 -- bytes
local LONGEST_WALLTIME = 1e9 -- seconds; more is no walltime
local AGENT = "User-Agent: %s/0.3.0 (%s)" -- name, release and mode, for `walltimed doctor`
local SOFT_LIMIT_SINCE = "0025.0005.0004"

-- Values -----------------------------------------------------------------------------------------

local function number(value)
  if type(value) ~= "number" or value == NO_VAL or value == NO_VAL16 then return nil end
  return value < INFINITE and value or nil
end

local function number_or(value, otherwise) return number(value) or otherwise end

-- A name, cut between characters of UTF-8: the service refuses half of one.
local function text(value)
  if type(value) ~= "string" or value == "" then return nil end
  if #value <= LONGEST_NAME then return value end
  return (value:sub(1, LONGEST_NAME):gsub("[\194-\244][\128-\191]*$", ""))
end

local function escape(char) return ("\\u%04x"):format(char:byte()) end

local function quoted(value) return '"' .. value:gsub('[%c"\\\127]', escape) .. '"' end

-- JSON of a string, a finite number, true, or a table of these; nil for everything else.
local function encode(value)
  if type(value) == "string" then return quoted(value) end
  if type(value) == "number" and math.abs(value) < 1e300 then
    return (value % 1 == 0 and "%.0f" or "%.17g"):format(value)
  end
  if value == true then return "true" end
  if type(value) ~= "table" then return nil end
  local parts = {}
  for name, part in pairs(value) do
    local word = type(name) == "string" and encode(part)
    if word then parts[#parts + 1] = quoted(name) .. ":" .. word end
  end
  return "{" .. table.concat(parts, ",") .. "}"
end

-- What the answer says, or nil if it is none, as one above the request would be. It holds no text
-- of a user's, so patterns can read it.
local function decode(body, request)
  local function positive(field, most, from)
    local value = tonumber(((from or body):match('"' .. field .. '"%s*:%s*(-?[%d.eE+-]+)%s*[,}]')))
    return value and value > 0 and value <= most and value or nil
  end
  local is_whole = body:match("^%s*%b{}%s*$")
  local predicted = is_whole and positive("predicted_walltime", request)
  if not predicted then return nil end
  local interval = body:match('"interval"%s*:%s*(%b{})')
  local id = body:match('"prediction_id"%s*:%s*"([A-Za-z0-9_-]+)"')
  return {
    predicted = predicted,
    lower = interval and positive("lower", LONGEST_WALLTIME, interval) or 0,
    upper = interval and positive("upper", LONGEST_WALLTIME, interval),
    coverage = interval and positive("coverage", 1, interval),
    likely = positive("likely", request),
    mean = positive("mean_walltime", request),
    id = id and #id <= LONGEST_ID and id or nil,
    jobs = positive("jobs", NO_VAL),
    has_history = body:match('"reason"%s*:%s*"history"') ~= nil,
    is_of_others = body:match('"reason"%s*:%s*"others"') ~= nil,
    warns = body:match('"limit_warning"%s*:%s*true') ~= nil,
    like_runs = positive("like_runs", NO_VAL),
    like_hits = positive("like_hits", NO_VAL),
    limit_probability = positive("limit_probability", 1),
    longer = positive("longer_walltime", LONGEST_WALLTIME),
  }
end

-- The exchange -----------------------------------------------------------------------------------

local function open(socket, config)
  if not config.unix_socket then return socket.tcp() end
  local unix = require("socket.unix")
  return (type(unix) == "function" and unix or unix.stream or unix.tcp)()
end

local function connect(connection, config)
  if config.unix_socket then return assert(connection:connect(config.unix_socket)) end
  assert(config.host:match("^[%d.]+$") or config.host:match("^[%x:]+$"), "host is no address")
  assert(connection:connect(config.host, config.port))
  connection:setoption("tcp-nodelay", true)
end

-- The token in a file, read for every exchange: a new one needs no restart. What else a file holds
-- is not repeated, as the token may be in it.
local function token_in(path)
  local file = path and io.open(path)
  if not file then return nil end
  local words = file:read(4096)
  file:close()
  return assert((words or ""):match("^%s*(%S+)%s*$"), path .. " does not hold one token and nothing else")
end

-- A MUNGE credential of the user whose process this is, good for one request; nil without one.
local function credential(config)
  local pipe = io.popen(("timeout %.3f '%s' --string=walltimed 2>/dev/null"):format(
    config.budget_ms / 1000, config.munge))
  local words = pipe and pipe:read(8192)
  if pipe then pipe:close() end
  return (words or ""):match("^(MUNGE:[%w+/=]+:)%s*$")
end

local function authorization(config)
  local token = token_in(config.token_file)
  if token then return "Bearer " .. token end
  local made = config.munge and credential(config)
  return made and "Munge " .. made
end

local function request(config, body)
  local lines = {
    "POST /v1/predictions HTTP/1.1", "Host: walltimed", "Content-Type: application/json",
    "Content-Length: " .. #body, AGENT:format(config.name, config.mode),
  }
  local proof = authorization(config)
  if proof then lines[#lines + 1] = "Authorization: " .. proof end
  return table.concat(lines, "\r\n") .. "\r\n\r\n" .. body
end

-- The head of an answer, and what has arrived behind it. `more` gives the next piece of it.
local function head_of(more)
  local data = ""
  repeat
    local seen = math.max(1, #data - 2)
    data = data .. more()
    local last, first = data:find("\r\n\r\n", seen)
    if last then return data:sub(1, last + 1), data:sub(first + 1) end
  until #data > LARGEST_HEAD
  error("a head without end", 0)
end

-- Status, body and whether the connection can be used again. Only a prediction's body is read.
local function answer(more)
  local head, rest = head_of(more)
  head = head:lower()
  local status = tonumber(head:match("^http/1%.%d (%d%d%d)[ \r]"))
  local length = tonumber(head:match("\r\ncontent%-length:[ \t]*(%d+)[ \t]*\r"))
  assert(status, "not an answer")
  if status ~= 200 then return status, "", false end
  assert(length and length <= LARGEST_ANSWER, "an answer of no length, or too long")
  local parts, arrived = { rest }, #rest
  while arrived < length do
    parts[#parts + 1] = more()
    arrived = arrived + #parts[#parts]
  end
  local stays = arrived == length and not head:match("\r\nconnection:[ \t]*close")
  return status, table.concat(parts):sub(1, length), stays
end

-- A function that gives the next piece of what the peer sends, bounded in bytes and by the clock:
-- luasocket itself looks at its limit only when it has to wait, and reads lines of any length.
local function pieces(connection, seconds_left)
  return function()
    connection:settimeout(seconds_left(), "t")
    local first = assert(connection:receive(1))
    connection:settimeout(0, "t")
    local whole, _, part = connection:receive(PIECE - 1)
    return first .. (whole or part)
  end
end

-- One question over the connection kept from last time, or a new one if that has gone stale.
local function exchanger(config, socket)
  local kept
  local function attempt(connection, is_new, message, seconds_left)
    connection:settimeout(seconds_left(), "t")
    if is_new then connect(connection, config) end
    assert(connection:send(message))
    return answer(pieces(connection, seconds_left))
  end
  return function(body)
    local budget = config.budget_ms / 1000
    local deadline = socket.gettime() + budget
    local function seconds_left()
      local left = deadline - socket.gettime()
      if left <= 0 then error("timeout", 0) end
      return math.min(left, budget) -- a clock that is set back meanwhile would prolong it
    end
    local is_new = kept == nil
    while true do
      local message = request(config, body)
      local connection = kept or open(socket, config)
      kept = nil
      local ok, status, data, stays = pcall(attempt, connection, is_new, message, seconds_left)
      if ok and stays then kept = connection else connection:close() end
      if ok then return status, data end
      if is_new or socket.gettime() >= deadline then error(status, 0) end
      is_new = true
    end
  end
end

-- The submission ---------------------------------------------------------------------------------

local function partition_of(job, partitions)
  if job.partition then return partitions[job.partition:match("^[^,]+")] end
  for _, partition in pairs(partitions) do
    if partition.flag_default == 1 then return partition end
  end
end

-- Minutes of the limit this job will have, and whether the user gave it; nil if there is none.
local function limit_of(job, partition)
  if job.time_limit ~= NO_VAL then return number(job.time_limit), true end
  if not partition then return nil end
  local default = partition.default_time
  if default == nil or default == NO_VAL then default = partition.max_time end
  return number(default), false
end

-- The number in gres:gpu:4 or gres/gpu:a100:2; 0 without GPUs.
local function gpus_in(tres)
  local sum = 0
  for kind in (type(tres) == "string" and tres or ""):gmatch("[^,]*gpu[^,]*") do
    sum = sum + (tonumber(kind:match(":(%d+)$")) or 1)
  end
  return sum
end

-- The least number of nodes, also by the tasks that fit on each.
local function nodes_of(job)
  local tasks, per_node = number(job.num_tasks), number(job.ntasks_per_node)
  local by_tasks = tasks and per_node and per_node > 0 and math.ceil(tasks / per_node) or 1
  return math.max(1, number(job.min_nodes) or 1, by_tasks)
end

local function processors_of(job, nodes)
  local tasks = number(job.num_tasks) or 1
  local gpus = math.max(gpus_in(job.tres_per_job), nodes * gpus_in(job.tres_per_node),
    tasks * gpus_in(job.tres_per_task))
  return math.max(1, number(job.min_cpus) or 1, tasks * (number(job.cpus_per_task) or 1),
    gpus * gpus_in(job.cpus_per_tres))
end

-- The processors of each core that the job uses; nil for all of them.
local function threads_of(job)
  local threads, tasks = number(job.threads_per_core), number(job.ntasks_per_core)
  if threads and threads > 0 and threads <= MOST_THREADS then return threads end
  if tasks and tasks > 0 and tasks <= MOST_THREADS then
    return math.min(MOST_THREADS, tasks * (number(job.cpus_per_task) or 1))
  end
end

-- KiB per processor.
local function memory_of(job, processors)
  local per_core, per_node = number(job.min_mem_per_cpu), number(job.min_mem_per_node)
  if per_core and per_core > 0 then return per_core * 1024 end
  if per_node and per_node > 0 then
    return per_node * 1024 * (number(job.min_nodes) or 1) / processors
  end
end

-- Further facts --------------------------------------------------------------------------------

-- A path or command line in printable characters.
local function line(value)
  if type(value) ~= "string" or value == "" then return nil end
  return (value:sub(1, LONGEST_LINE):gsub("[^ -~]+", "?"))
end

-- The hash of a script without blanks, comments and numbers: that of predictors/facts.py.
local function script_hash(script)
  if type(script) ~= "string" or script == "" then return nil end
  local found = 0
  for row in (script:sub(1, LONGEST_SCRIPT) .. "\n"):gmatch("([^\n]*)\n") do
    if not row:match("^%s*#") then
      row = row:gsub(" #.*", ""):gsub("[%s%d.]", "")
      for place = 1, #row do found = (found * 131 + row:byte(place)) % HASH_MODULUS end
    end
  end
  return ("%012x"):format(found)
end

-- Number and type of the GPUs in 2, a100:2, gpu:2, gres:gpu:a100:2, cpu=4,gres/gpu:2.
local function gpus_in(tres)
  for part in tostring(tres or ""):gmatch("[^,]+") do
    local is_gres = part:match("^gres[:/]gpu") or part:match("^gpu")
    local rest = is_gres and part:gsub("^gres[:/]", ""):gsub("^gpu[:=]?", "") or part
    local kind, number = rest:match("^(%a[^:=]*)[:=]?(%d*)$")
    number = rest == "" and 1 or tonumber(rest) or (kind and (tonumber(number) or 1))
    if (is_gres or not part:find("[=/]")) and number then return number, kind end
  end
end

local function gpus_of(job)
  local number, kind = gpus_in(job.tres_per_job)
  if number then return number, kind end
  number, kind = gpus_in(job.tres_per_node or job.gres)
  if number then return number * math.max(1, number_or(job.min_nodes, 1)), kind end
  number, kind = gpus_in(job.tres_per_task)
  if number then return number * math.max(1, number_or(job.num_tasks, 1)), kind end
end

-- The number of tasks of an array of 1-10:2,15%4.
local function tasks_in(indices)
  if type(indices) ~= "string" or indices == "" then return nil end
  local total = 0
  for range in indices:gsub("%%.*", ""):gmatch("[^,]+") do
    local first, last, step = range:match("^(%d+)%-?(%d*):?(%d*)$")
    if not first then return nil end
    last, step = tonumber(last) or tonumber(first), math.max(1, tonumber(step) or 1)
    total = total + math.max(0, math.floor((last - first) / step) + 1)
  end
  return total > 0 and total or nil
end

-- Program and arguments of the job.
local function command_of(job)
  if job.submit_line then return line(job.submit_line) end
  local words = {}
  for place = 0, type(job.argv) == "table" and number_or(job.argc, 0) or -1 do
    words[#words + 1] = job.argv[place]
  end
  return line(table.concat(words, " "))
end

-- Numbers and words such as "wt:rule=align wt:input_bytes=1500", at most eight, in the comment or,
-- where a workflow engine writes a comment of its own, as Snakemake does, in the wckey.
local function features_in(job)
  local found, count = {}, 0
  local words = (text(job.comment) or "") .. " " .. (text(job.wckey) or "")
  for name, value in words:gmatch("wt:([%w_]+)=([%w_.+-]+)") do
    if count < MOST_FEATURES and not found[name] then
      found[name], count = tonumber(value) or value, count + 1
    end
  end
  return count > 0 and found or nil
end

local function facts_of(job, config)
  local gpus, kind = gpus_of(job)
  local nodes = number_or(job.min_nodes, 0)
  return {
    work_dir = line(job.work_dir),
    script_hash = script_hash(job.script),
    submit_line = command_of(job),
    qos = text(job.qos),
    nodes = nodes > 0 and nodes or nil,
    gpus = gpus,
    gpu_type = text(kind),
    array_size = tasks_in(job.array_inx),
    constraint = line(job.features),
    dependency = line(job.dependency and job.dependency:match("^%a+")),
    submit_host = text(job.alloc_node),
    interactive = not job.script or nil, -- of salloc or srun
    features = config.features and config.features(job) or features_in(job),
  }
end

-- Adds further facts to a submission; without them it is as good as before.
local function add_facts(submission, job, config)
  if not config.facts then return end
  local is_read, facts = pcall(facts_of, job, config)
  for name, value in pairs(is_read and facts or {}) do submission[name] = value end
end

local function submission_of(job, partition, minutes, config)
  local nodes = nodes_of(job)
  local processors = processors_of(job, nodes)
  return {
    cluster = config.cluster,
    user = text(job.user_name),
    project = text(job.account) or text(job.default_account),
    queue = partition and text(partition.name) or text(job.partition),
    application = text(job.name),
    requested_walltime = minutes * 60,
    requested_processors = processors,
    requested_nodes = nodes > 1 and nodes or nil,
    exclusive = job.shared == 0 or nil, -- what the service knows of the nodes says how many cores
    threads_per_core = threads_of(job),
    requested_memory = memory_of(job, processors),
    submit_time = os.time(),
  }
end

-- The answer -------------------------------------------------------------------------------------

-- The same words as those of `walltimed ask` and of the pages.
local function duration(seconds)
  if seconds < 0.95 then return ("%.1g s"):format(seconds) end
  if seconds < 59.5 then return ("%.0f s"):format(seconds) end
  if seconds < 89.5 * 60 then return ("%.0f min"):format(seconds / 60) end
  if seconds < 98.35 * 3600 then return ("%.1f h"):format(seconds / 3600) end
  return ("%.1f days"):format(seconds / 86400)
end

local function whole_minutes(seconds)
  return math.max(1, math.ceil(seconds / 60))
end

-- The range of the runtime, where the answer has one that rests on runs; nil otherwise.
local function range_of(found)
  local rests_on_runs = found.has_history or found.is_of_others
  if not (found.upper and found.coverage and rests_on_runs) then return nil end
  return ("range %s to %s (%.0f%%)"):format(duration(found.lower), duration(found.upper),
    found.coverage * 100)
end

-- A planned time is said only where the site's mode lets Slurm plan or order by predictions.
local function advice(found, minutes, config)
  local parts = {}
  if found.likely then parts[1] = "likely " .. duration(found.likely) end
  parts[#parts + 1] = range_of(found)
  local requested = duration(minutes * 60)
  if LADDER[config.mode] >= LADDER.order then
    parts[#parts + 1] = ("planned %s of the %s requested"):format(duration(found.predicted), requested)
  else
    if not found.likely then parts[#parts + 1] = "predicted " .. duration(found.predicted) end
    parts[#parts + 1] = "requested " .. requested
  end
  local whose = found.is_of_others and "; no run of yours is known, these are of other users" or ""
  return "walltimed: " .. table.concat(parts, ", ") .. whose
end

-- A limit as sbatch takes it.
local function clock(minutes)
  minutes = math.ceil(minutes)
  return ("%d:%02d:00"):format(math.floor(minutes / 60), minutes % 60)
end

-- A job that will probably be cut, and a longer limit that its partition allows, if one is known.
local function warning(found, minutes, longest)
  local limit, cut = clock(minutes)
  if found.like_hits and found.like_runs then
    cut = ("%.0f of your last %.0f jobs like this one were ended at their limit; this one's is %s"):format(
      found.like_hits, found.like_runs, limit)
  else
    cut = "such a job is ended at its limit of " .. limit
    if found.limit_probability then
      cut = cut .. (" with a probability of %.0f%%"):format(100 * found.limit_probability)
    end
  end
  local longer = found.longer and math.min(math.ceil(found.longer / 60), longest or math.huge)
  local way = "save its state before"
  if longer and longer > minutes then way = ("ask for %s, or %s"):format(clock(longer), way) end
  return "walltimed: " .. cut .. "; " .. way
end

-- The line for the user, if there is anything to say.
local function line_for(found, minutes, longest, config)
  if found.warns then return warning(found, minutes, longest) end
  if found.jobs and whole_minutes(found.predicted) < minutes then return advice(found, minutes, config) end
end

-- A prediction is no limit, many jobs outlive theirs. Above the end of a wide interval few end,
-- if it rests on the user's history: without, it says nothing but what can be. Where all runs lasted
-- next to nothing, they failed at once, or their records are wrong.
local function is_safe_to_kill_at(found, config)
  return found.has_history and found.jobs and found.jobs >= FEWEST_RUNS and found.upper and found.coverage
    and found.coverage >= config.limit_coverage
    and math.max(found.predicted, found.upper) > SHORTEST_LIMIT
end

-- The SiteFactor of a new job of so many minutes, which is added to Slurm's other priority factors.
local function site_factor(minutes, config)
  local largest = config.largest_site_factor
  if config.order == "response-ratio" then
    local length = math.min(config.longest, math.max(config.shortest, 60 * minutes))
    local steps = math.floor(math.log(config.longest / length) / math.log(GROWTH) + 1e-9)
    return math.floor(largest * math.min(MOST_STEPS, steps) / MOST_STEPS)
  end
  local precedence = math.min(LENGTH_FACTOR * 60 * minutes, MOST_PRECEDENCE)
  return math.floor(largest * (MOST_PRECEDENCE - precedence) / MOST_PRECEDENCE)
end

-- Notes marks down behind what others wrote, all at once.
local function note(job, marks)
  local found = job.admin_comment
  if type(found) == "string" and found ~= "" then table.insert(marks, 1, found) end
  job.admin_comment = table.concat(marks, ";")
end

-- What the site's mode allows; a limit that the user gave is never touched.
-- `wtp` names the prediction, `wtm` says that the time_min is ours: slurm-updater reads both.
local function apply(job, found, minutes, is_given, longest, config)
  local rung, marks = LADDER[config.mode], {}
  if found.id then marks[1] = "wtp=" .. found.id end
  local line = rung >= LADDER.advise and line_for(found, minutes, longest, config)
  if line then slurm.log_user("%s", line) end
  if rung >= LADDER["default-limit"] and not is_given and is_safe_to_kill_at(found, config) then
    local limit = math.max(found.predicted, found.upper) * math.max(1, config.limit_margin)
    minutes = math.min(minutes, whole_minutes(limit))
    job.time_limit = minutes
  end
  local planned = math.max(found.upper or found.predicted, found.predicted, config.soft_floor_seconds)
  local soft, plans = whole_minutes(planned), config.mode == "soft" and config.soft_is_safe
  local has_own = job.site_factor ~= nil and job.site_factor ~= NO_VAL
  if rung >= LADDER.order and not plans and config.largest_site_factor > 0 and not has_own then
    local length = whole_minutes(math.max(found.mean or found.predicted, config.soft_floor_seconds))
    job.site_factor = site_factor(math.min(length, minutes), config)
  end
  local is_free = job.time_min == nil or job.time_min == NO_VAL
  if plans and is_free and soft < minutes then
    job.time_min = soft
    marks[#marks + 1] = ("wtm=%d"):format(soft)
  end
  if marks[1] then note(job, marks) end
end

-- Settings ---------------------------------------------------------------------------------------

local function sum_of(value, keys)
  local sum = 0
  for _, key in ipairs(keys) do sum = sum + (tonumber(value(key) or 0) or 0) end
  return sum
end

local function slurm_conf(path)
  local file = io.open(path)
  local lines = file and file:read("*a") or ""
  if file then file:close() end
  local function value(key)
    for line in ("\n" .. lines):gmatch("\n%s*([^#\n]*)") do
      local found = line:lower():match("^" .. key .. "%s*=%s*(%S+)")
      if found then return found end
    end
  end
  return {
    cluster = value("clustername"),
    scheduler = value("schedulerparameters") or "",
    priority = value("prioritytype"),
    age_weight = tonumber(value("priorityweightage") or 0) or 0,
    longest_age = value("prioritymaxage"),
    other_weights = sum_of(value, OTHER_WEIGHTS),
  }
end

-- Seconds of a time in slurm.conf: minutes, minutes:seconds, hours:minutes:seconds, days-hours, …
local function seconds_of(words)
  local days, rest = words:match("^(%d+)%-(.*)$")
  local parts = {}
  for part in (rest or words):gmatch("%d+") do parts[#parts + 1] = tonumber(part) end
  if not days and #parts < 3 then table.insert(parts, 1, 0) end
  local hours, minutes, seconds = parts[1] or 0, parts[2] or 0, parts[3] or 0
  return 86400 * (tonumber(days) or 0) + 3600 * hours + 60 * minutes + seconds
end

-- The largest site factor without a setting: what a day of waiting adds to a priority, or under
-- response-ratio the sum of the other weights, or what outweighs ages; 0 where site factors or ages do not count.
local function usual_factor(site, order)
  if site.priority == "priority/basic" then return 0 end
  if order == "response-ratio" then
    if site.other_weights > 0 then return site.other_weights end
    return math.max(USUAL_FACTOR, MOST_STEPS * site.age_weight)
  end
  local longest = site.longest_age and seconds_of(site.longest_age) or LONGEST_AGE
  return longest > 0 and math.floor(site.age_weight * MOST_PRECEDENCE / longest) or 0
end

-- Below 25.05.4, or without the option, time_min lets the backfill scheduler lower the hard limit.
local function soft_is_safe(version, scheduler)
  local major, minor, micro = tostring(version):match("(%d+)%.(%d+)%.(%d+)")
  if not major or not scheduler:find("time_min_as_soft_limit") then return false end
  return ("%04d.%04d.%04d"):format(major, minor, micro) >= SOFT_LIMIT_SINCE
end

-- A file that root made under a strict umask cannot be opened here (EACCES), and is there.
local function is_off(path)
  local file, _, code = io.open(path or OFF)
  if file then file:close() end
  return file ~= nil or code == 13
end

-- The names, strings and numbers in the JSON object that `walltimed connect` writes; none without it.
local function connected(path)
  local file = io.open(path)
  if not file then return {} end
  local written, found = file:read("*a"), {}
  file:close()
  local function take(name, value)
    found[name] = tonumber(value) or value:match('^"(.*)"$')
    return ""
  end
  written = written:gsub('"([%w_]+)"%s*:%s*("[^"\\]*")', take):gsub('"([%w_]+)"%s*:%s*(%d+)', take)
  assert(written:match("^%s*{[%s,]*}%s*$"), path .. " is not what walltimed connect writes")
  return found
end

-- The shortest and the longest length that the order response-ratio distinguishes, in seconds.
local function lengths_of(ratio)
  local offset, shortest, longest = tostring(ratio):match("^(%d+),(%d+),(%d+)$")
  local added, least, most = tonumber(offset), tonumber(shortest), tonumber(longest)
  assert(added and added >= 1 and added <= 1e9 and least >= 1 and least <= most and most <= 1e9,
    "ratio is OFFSET,SHORTEST,LONGEST in seconds, such as 14400,600,43200, not " .. tostring(ratio))
  return least, most
end

-- The settings in a file, or without it those that are given in its place; `last` wins over them.
local function settings(directory, file, name, otherwise, last)
  local config = { name = name }
  for key, value in pairs(DEFAULTS) do config[key] = value end
  local path = directory .. "/" .. file
  local found = io.open(path)
  if found then found:close() end
  local chosen = (found or not otherwise) and dofile(path) or otherwise
  for key, value in pairs(chosen) do config[key] = value end
  if last and last.host then config.unix_socket = nil end
  for key, value in pairs(last or {}) do config[key] = value end
  assert(LADDER[config.mode], "no such mode: " .. tostring(config.mode))
  assert(config.order == "sjf-aging" or config.order == "response-ratio", "no such order: " .. tostring(config.order))
  config.shortest, config.longest = lengths_of(config.ratio)
  assert(not config.token, "token is now in a file: token_file")
  local site = slurm_conf(directory .. "/slurm.conf")
  config.cluster = config.cluster or site.cluster
  config.soft_is_safe = soft_is_safe(config.slurm_version, site.scheduler)
  config.largest_site_factor = config.largest_site_factor or usual_factor(site, config.order)
  return config
end

local function allows(list, name)
  if not list then return true end
  for _, allowed in ipairs(list) do
    if allowed == name then return true end
  end
  return false
end

local function concerns(config, job, submission)
  local comment = text(job.comment) or ""
  return not comment:find(config.opt_out, 1, true) and allows(config.users, submission.user)
    and allows(config.accounts, submission.project) and allows(config.partitions, submission.queue)
end

-- What the hooks call ----------------------------------------------------------------------------

-- An asker: a function of a submission that gives the answer, or nil. Failures begin a pause.
local function asker(config, log)
  local exchange = exchanger(config, require("socket"))
  local failed_at = -math.huge
  return function(submission)
    local passed = os.time() - failed_at -- below 0 after a clock was set back
    if passed >= 0 and passed < config.pause_seconds then return nil end
    local ok, status, body = pcall(exchange, encode(submission))
    -- A name that is no UTF-8 is one job's trouble, and no reason to leave the others alone.
    if ok and (status == 400 or status == 422) then return nil end
    local found = ok and status == 200 and decode(body, submission.requested_walltime)
    if found then return found end
    failed_at = os.time()
    log("walltimed: %s; no predictions for %d s",
      ok and "HTTP " .. tostring(status) .. " without a prediction" or tostring(status),
      config.pause_seconds)
  end
end

local walltimed = { is_off = is_off } -- `walltimed connect --off` reads back what it says

-- A function of a job description and the partitions that does all there is to do at submission.
function walltimed.submitter(directory, config_name)
  local last = connected(directory .. "/walltimed_site.json")
  local file = config_name or "walltimed_config.lua"
  local config = settings(directory, file, "walltimed.lua", nil, last)
  if config.mode == "off" then return function() end end
  config.munge = nil -- slurmctld is not the user, and holds locks
  if LADDER[config.mode] == LADDER.order and config.largest_site_factor == 0 then
    slurm.log_error("walltimed: no order without PriorityType=priority/multifactor and a "
      .. "PriorityWeightAge (docs/slurm.md)")
  end
  local ask = asker(config, slurm.log_error)
  return function(job, partitions)
    if is_off() then return end
    local partition = partition_of(job, partitions)
    local minutes, is_given = limit_of(job, partition)
    if not minutes or minutes < 1 then return end
    local submission = submission_of(job, partition, minutes, config)
    add_facts(submission, job, config)
    local found = concerns(config, job, submission) and ask(submission)
    local longest = partition and number(partition.max_time)
    if found then apply(job, found, minutes, is_given, longest, config) end
  end
end

-- A function of a submission and a job description that gives a line of advice for its user, or nil.
function walltimed.adviser(directory, config_name)
  local file = config_name or "walltimed_cli_config.lua"
  local config = settings(directory, file, "cli_filter.lua", { mode = "advise" })
  local ask = config.mode ~= "off" and asker(config, function() end)
  return function(submission, job)
    if is_off() then return end
    add_facts(submission, job, config)
    submission.cluster, submission.submit_time = config.cluster, os.time()
    local found = ask and concerns(config, job, submission) and ask(submission)
    local minutes = submission.requested_walltime / 60
    return found and line_for(found, minutes, nil, config) or nil
  end
end

return walltimed
