-- The health of a ClusterCatalog, of this controller and of those that know no Ready.
-- What each condition says is in docs/status.md. Its CRD follows kstatus, except that a
-- controller without Ready has Serving and Progressing alone.
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

local function because(kind, reason)
  return conditions[kind] ~= nil and conditions[kind].reason == reason
end

-- What is told of an earlier generation says nothing of this one.
local function isBehind(observed)
  return observed ~= nil and generation ~= nil and observed < generation
end

if isBehind(status.observedGeneration) then
  return verdict("Progressing", "Waiting for generation " .. tostring(generation))
end
if status.observedGeneration == nil then
  for _, kind in ipairs({ "Serving", "Progressing" }) do
    if conditions[kind] ~= nil and isBehind(conditions[kind].observedGeneration) then
      return verdict("Progressing", "Waiting for generation " .. tostring(generation))
    end
  end
end

if obj.spec ~= nil and obj.spec.availabilityMode == "Unavailable" and is("Serving", "False") and because("Serving", "UserSpecifiedUnavailable") then
  return verdict("Suspended", conditions.Serving.message)
end

if is("Stalled", "True") then
  return verdict("Degraded", conditions.Stalled.message)
end
if is("Progressing", "False") and because("Progressing", "Blocked") then
  return verdict("Degraded", conditions.Progressing.message)
end

local ready = conditions.Ready
if ready ~= nil then
  if ready.status == "True" then
    return verdict("Healthy", ready.message)
  end
  if ready.status == "False" and not is("Reconciling", "True") then
    return verdict("Degraded", ready.message)
  end
  return verdict("Progressing", ready.message)
end

if is("Reconciling", "True") then
  return verdict("Progressing", conditions.Reconciling.message)
end

if is("Progressing", "True") then
  local message = conditions.Progressing.message or ""
  if is("Serving", "True") and because("Progressing", "Succeeded") then
    return verdict("Healthy", message)
  end
  if is("Serving", "True") and because("Progressing", "Retrying") then
    return verdict("Healthy", "still serving the content from before: " .. message)
  end
  return verdict("Progressing", message)
end
return verdict("Progressing", "Waiting for the controller")
