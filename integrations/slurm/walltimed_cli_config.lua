-- Settings of walltimed.lua where cli_filter.lua uses it; all of them stand at its top.
-- Every user can read this file. The service must be reachable from the submit hosts.
return {
  mode = "advise",         -- off, or advise
  munge = "/usr/bin/munge", -- names the user to a service that asks for tokens; nil: sends nothing
  -- host = "192.0.2.1",
}
