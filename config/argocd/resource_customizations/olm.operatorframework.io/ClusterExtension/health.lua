-- The health of a ClusterExtension, of this controller and of those that know no Ready.
-- What each condition says is in docs/status.md. Its CRD follows kstatus, except that a
-- controller without Ready has Installed and Progressing alone.
-- Argo CD opens no library for strings: messages are passed on as they are.

local function verdict(status, message)
  return { status = status, message = message or "" }
end

local generation = obj.metadata.generation
local status = obj.status
if status == nil then
  return verdict("Progressing", "Waiting for the controller")
end

local conditions = {}
for _, condition in ipairs(status.conditions or {}) do
  if condition.type ~= nil then
    conditions[condition.type] = condition
  end
end

local function is(kind, value)
  return conditions[kind] ~= nil and conditions[kind].status == value
end

local function because(kind, ...)
  for _, reason in ipairs({ ... }) do
    if conditions[kind] ~= nil and conditions[kind].reason == reason then
      return true
    end
  end
  return false
end

-- What is told of an earlier generation says nothing of this one.
local function isBehind(observed)
  return observed ~= nil and generation ~= nil and observed < generation
end

if isBehind(status.observedGeneration) then
  return verdict("Progressing", "Waiting for generation " .. tostring(generation))
end
if status.observedGeneration == nil then
  for _, kind in ipairs({ "Installed", "Progressing" }) do
    if conditions[kind] ~= nil and isBehind(conditions[kind].observedGeneration) then
      return verdict("Progressing", "Waiting for generation " .. tostring(generation))
    end
  end
end

local ready = conditions.Ready
if obj.spec ~= nil and obj.spec.suspend == true then
  return verdict("Suspended", ready and ready.message)
end

if is("Stalled", "True") then
  return verdict("Degraded", conditions.Stalled.message)
end
if is("Progressing", "False") and because("Progressing", "Blocked", "InvalidConfiguration", "ProgressDeadlineExceeded") then
  return verdict("Degraded", conditions.Progressing.message)
end

-- Nobody has to act yet: Degraded would end a sync at once. An extension can be Ready while upgrades cannot be found.
if not is("Ready", "True") and is("Progressing", "True") and because("Progressing", "Retrying", "RollingOut") then
  return verdict("Progressing", conditions.Progressing.message)
end

-- A version that is deprecated works as well as before.
local function healthy(message)
  message = message or ""
  if is("Deprecated", "True") then
    if message ~= "" then
      message = message .. "; "
    end
    message = message .. "deprecated: " .. (conditions.Deprecated.message or "")
  end
  return verdict("Healthy", message)
end

if ready ~= nil then
  if ready.status == "True" then
    return healthy(ready.message)
  end
  if ready.status == "False" and not is("Reconciling", "True") then
    return verdict("Degraded", ready.message)
  end
  return verdict("Progressing", ready.message)
end

if is("Reconciling", "True") then
  return verdict("Progressing", conditions.Reconciling.message)
end

if is("Progressing", "True") and because("Progressing", "Succeeded") then
  if is("Installed", "True") then
    return healthy(conditions.Progressing.message)
  end
  if is("Installed", "False") then
    return verdict("Progressing", conditions.Installed.message)
  end
end
return verdict("Progressing", "Waiting for the controller")
