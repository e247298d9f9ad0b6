-- Content that is not served is not offered to anybody, and what is installed stays.
local isServed = obj.spec == nil or obj.spec.availabilityMode ~= "Unavailable"

return {
  suspend = { disabled = not isServed },
  resume = { disabled = isServed },
}
