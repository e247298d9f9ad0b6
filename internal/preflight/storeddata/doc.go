// Package storeddata says whether the objects that a cluster stores now would
// be valid, and whole, under a new version of their CustomResourceDefinition.
//
// [New] takes the definition as it is and as it would be, and gives a
// [Validator]. Its Check is a function of one object: (definitions, object) ->
// [Problem]s. It does what the API server does when the object is written under
// the new definition, with the same libraries: fields that the schema does not
// know are removed, defaults are filled in, and the schema, the types of lists
// and maps, embedded objects and the rules in CEL are held against the result.
// Problems that the object has under its present definition already are not
// those of the upgrade, and are left out.
//
// [Scan] pages through the objects and gives a [Report]; [Inventory] gives
// one of what would be deleted together with its definition. Both read through
// a port, so they act as whoever the port acts as.
//
// The package does not say how two definitions differ, writes nothing, and
// holds no more than some MiB of objects at a time. It shows no values of objects,
// as people may read a report who may not read the objects. Names of fields and
// keys of maps it does show, and so do messages that the authors of CEL rules
// build from values.
package storeddata
