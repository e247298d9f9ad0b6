-- A digest that is not known takes away one that was approved before.
-- Where the spec names an image, what waits does so for rights that grow.
local approved = obj.spec.source.catalog or obj.spec.install.preflight.permissions
approved.approvedVersion = obj.status.pending.bundle.version
approved.approvedDigest = obj.status.pending.digest
return obj
