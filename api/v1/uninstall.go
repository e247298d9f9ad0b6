package v1

// UninstallPolicy says whether the content of an extension goes with it.
//
// +kubebuilder:validation:Enum=Delete;Orphan
type UninstallPolicy string

const (
	// UninstallPolicyDelete has content deleted, as the other fields say.
	UninstallPolicyDelete UninstallPolicy = "Delete"

	// UninstallPolicyOrphan leaves everything that is installed, without an
	// owner.
	UninstallPolicyOrphan UninstallPolicy = "Orphan"
)

// DefinitionsUninstallPolicy says what becomes of CustomResourceDefinitions when
// their extension is deleted.
//
// +kubebuilder:validation:Enum=Delete;Keep;RefuseWhileInUse
type DefinitionsUninstallPolicy string

const (
	// DefinitionsUninstallPolicyDelete deletes them, and with them all custom
	// resources of their kinds.
	DefinitionsUninstallPolicyDelete DefinitionsUninstallPolicy = "Delete"

	// DefinitionsUninstallPolicyKeep leaves them and their custom resources, and
	// deletes everything else.
	DefinitionsUninstallPolicyKeep DefinitionsUninstallPolicy = "Keep"

	// DefinitionsUninstallPolicyRefuseWhileInUse deletes nothing at all as long as
	// there are custom resources of them.
	DefinitionsUninstallPolicyRefuseWhileInUse DefinitionsUninstallPolicy = "RefuseWhileInUse"
)

// CustomResourcesUninstallPolicy says when custom resources are deleted that go
// with their definitions.
//
// +kubebuilder:validation:Enum=DeleteFirst
type CustomResourcesUninstallPolicy string

// CustomResourcesUninstallPolicyDeleteFirst deletes them while their operator still
// runs, and waits until they are gone.
const CustomResourcesUninstallPolicyDeleteFirst CustomResourcesUninstallPolicy = "DeleteFirst"

// HooksUninstallPolicy says whether the hooks of a Helm chart run that are for its deletion.
//
// +kubebuilder:validation:Enum=Run;Skip
type HooksUninstallPolicy string

const (
	// HooksUninstallPolicyRun runs them, and the deletion waits for them.
	HooksUninstallPolicyRun HooksUninstallPolicy = "Run"

	// HooksUninstallPolicySkip leaves them out.
	HooksUninstallPolicySkip HooksUninstallPolicy = "Skip"
)

// ClusterExtensionUninstallConfig says what becomes of content when its extension is
// deleted.
//
// +kubebuilder:validation:XValidation:rule="has(self.policy) || has(self.customResourceDefinitions) || has(self.customResources) || has(self.hooks)",message="at least one of [policy customResourceDefinitions customResources hooks] are required when uninstall is specified"
// +kubebuilder:validation:XValidation:rule="!has(self.policy) || self.policy != 'Orphan' || !has(self.customResourceDefinitions) && !has(self.customResources) && !has(self.hooks)",message="customResourceDefinitions, customResources and hooks are forbidden when policy is Orphan: everything stays"
// +kubebuilder:validation:XValidation:rule="!has(self.customResources) || !has(self.customResourceDefinitions) || self.customResourceDefinitions == 'Delete'",message="customResources is forbidden unless customResourceDefinitions is Delete"
type ClusterExtensionUninstallConfig struct {
	// policy sets whether the installed objects are deleted with the extension.
	//
	// Delete deletes them as the other fields specify, and Namespaces of the
	// extension with all objects in them. Orphan keeps all objects without an owner,
	// as kubectl delete --cascade=orphan does; the ServiceAccount must be allowed
	// to patch them, and the other fields are forbidden. If policy is omitted, the
	// objects are deleted, but the deletion is refused while a Namespace of the
	// extension contains objects of others.
	//
	// +optional
	Policy UninstallPolicy `json:"policy,omitempty"`

	// customResourceDefinitions says what becomes of the definitions of the
	// extension.
	//
	// Delete deletes them, and with them all custom resources of their kinds in
	// all namespaces. Keep leaves them and their custom resources; an extension
	// of the same name takes them over. RefuseWhileInUse deletes nothing as long
	// as there are custom resources of them: the operator goes on running, the
	// condition Ready names them, and the deletion goes on by itself when the
	// last one is gone. Left out, Delete.
	//
	// +optional
	CustomResourceDefinitions DefinitionsUninstallPolicy `json:"customResourceDefinitions,omitempty"`

	// customResources says when custom resources are deleted that go with their
	// definitions. It is forbidden unless customResourceDefinitions is Delete.
	//
	// DeleteFirst deletes them while the operator still runs, so that it can
	// remove their finalizers, waits until they are gone, deletes the operator,
	// and then the rest. Left out, everything goes at the same time.
	//
	// +optional
	CustomResources CustomResourcesUninstallPolicy `json:"customResources,omitempty"`

	// hooks says whether the hooks of a Helm chart run that are for its deletion.
	//
	// Run runs them as the ServiceAccount, and the deletion waits until they have
	// succeeded. Skip leaves them out. Left out, Run.
	//
	// +optional
	Hooks HooksUninstallPolicy `json:"hooks,omitempty"`
}
