package crdupgrade

import "slices"

// Names of checks. Those that crdify has, have its names.
const (
	checkScope                = "scope"
	checkNames                = "names"
	checkCRDRemoval           = "crdRemoval"
	checkStoredVersionRemoval = "storedVersionRemoval"
	checkServedVersionRemoval = "servedVersionRemoval"
	checkStorageVersion       = "storageVersion"
	checkConversion           = "conversion"
	checkSubresources         = "subresources"
	checkSelectableFields     = "selectableFields"
	checkSchema               = "schema"
	checkPreserveUnknown      = "preserveUnknownFields"
	checkFieldRemoval         = "existingFieldRemoval"
	checkType                 = "type"
	checkRequired             = "required"
	checkDefault              = "default"
	checkEnum                 = "enum"
	checkMaximum              = "maximum"
	checkMaxItems             = "maxItems"
	checkMaxLength            = "maxLength"
	checkMaxProperties        = "maxProperties"
	checkMinimum              = "minimum"
	checkMinItems             = "minItems"
	checkMinLength            = "minLength"
	checkMinProperties        = "minProperties"
	checkPattern              = "pattern"
	checkNullable             = "nullable"
	checkOneOf                = "oneOf"
	// checkUnhandled is about any other keyword of a schema; the detail names it.
	checkUnhandled = "unhandled"
)

// advice says for each check what to do. Checks that can be of several kinds have
// advice that fits all of them.
var advice = map[string]string{
	checkScope:                "a definition cannot change its scope: back up and delete its objects and the definition, upgrade, and create them anew",
	checkNames:                "use the new names; a definition that is in use cannot change its kind",
	checkCRDRemoval:           "deleting a definition deletes its objects: back them up, or delete those that are not needed",
	checkStoredVersionRemoval: "write all objects once so that they are stored in a version that stays, for instance by a StorageVersionMigration, then take the old version out of status.storedVersions of the definition",
	checkServedVersionRemoval: "move clients and manifests to a version that is served",
	checkStorageVersion:       "after the upgrade write all objects once so that they are stored in the new version",
	checkConversion:           "check that objects read the same in all served versions",
	checkSubresources:         "check the clients that write or scale through the subresource",
	checkSelectableFields:     "check the clients that select by the field",
	checkSchema:               "make stored objects fit the schema",
	checkPreserveUnknown:      "remove what the schema does not know from stored objects, or move it to fields that it does know: it is dropped at their next write",
	checkFieldRemoval:         "the value is dropped from stored objects at their next write: move it to where the new version has it, or remove it",
	checkDefault:              "set the field in objects that depend on its default",
	checkRequired:             "set the field in all stored objects",
}

// adviceOn is what to do about a finding of a check.
func adviceOn(check string) string {
	if text, ok := advice[check]; ok {
		return text
	}
	return "change stored objects so that they fit the new schema"
}

// Checks are the names of all checks, sorted.
func Checks() []string {
	names := []string{
		checkScope, checkNames, checkCRDRemoval, checkStoredVersionRemoval, checkServedVersionRemoval, checkStorageVersion,
		checkConversion, checkSubresources, checkSelectableFields, checkSchema, checkPreserveUnknown, checkFieldRemoval,
		checkType, checkRequired, checkDefault, checkEnum, checkMaximum, checkMaxItems, checkMaxLength, checkMaxProperties,
		checkMinimum, checkMinItems, checkMinLength, checkMinProperties, checkPattern, checkNullable, checkOneOf, checkUnhandled,
	}
	slices.Sort(names)
	return names
}
