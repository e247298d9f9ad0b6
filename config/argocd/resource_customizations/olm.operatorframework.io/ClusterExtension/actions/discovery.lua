-- What is suspended is left as it is. What waits for approval is in the status.
local isSuspended = obj.spec ~= nil and obj.spec.suspend == true
local waits = obj.status ~= nil and obj.status.pending ~= nil

return {
  suspend = { disabled = isSuspended },
  resume = { disabled = not isSuspended },
  approve = { disabled = not waits },
}
