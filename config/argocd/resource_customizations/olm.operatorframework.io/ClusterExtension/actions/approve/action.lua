-- A digest that is not known takes away one that was approved before.
local catalog = obj.spec.source.catalog
catalog.approvedVersion = obj.status.pending.bundle.version
catalog.approvedDigest = obj.status.pending.digest
return obj
