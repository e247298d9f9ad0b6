obj.spec.availabilityMode = "Available"
return obj
