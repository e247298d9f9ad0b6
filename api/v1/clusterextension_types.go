package v1

import (
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ClusterExtension installs one package from a catalog and keeps it at the
// wanted version. All content is read and written as the ServiceAccount named
// in spec.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=cext,categories=olm
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Installed Bundle",type=string,JSONPath=`.status.install.bundle.name`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.install.bundle.version`
// +kubebuilder:printcolumn:name="Installed",type=string,JSONPath=`.status.conditions[?(@.type=='Installed')].status`
// +kubebuilder:printcolumn:name="Progressing",type=string,JSONPath=`.status.conditions[?(@.type=='Progressing')].status`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=='Ready')].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Package",type=string,priority=1,JSONPath=`.spec.source.catalog.packageName`
// +kubebuilder:printcolumn:name="Pending",type=string,priority=1,JSONPath=`.status.pending.bundle.version`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=='Ready')].reason`
type ClusterExtension struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is wanted.
	//
	// +optional
	Spec ClusterExtensionSpec `json:"spec,omitempty"`

	// status is what the controller found and did. It is written by the
	// controller only. The default says that it has not looked yet.
	//
	// +kubebuilder:default:={"observedGeneration":-1}
	// +optional
	Status ClusterExtensionStatus `json:"status,omitempty"`
}

// ClusterExtensionList is a list of ClusterExtensions.
//
// +kubebuilder:object:root=true
type ClusterExtensionList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the ClusterExtensions.
	Items []ClusterExtension `json:"items"`
}

// ClusterExtensionSpec is the wanted state of a ClusterExtension.
type ClusterExtensionSpec struct {
	// namespace is where the ServiceAccount lives and where namespaced objects
	// of the extension go, unless the bundle says otherwise. The namespace has
	// to exist; it is neither created nor deleted with the extension.
	//
	// Required and immutable. A DNS-1123 label: at most 63 lower-case letters,
	// digits and hyphens, with a letter or digit at both ends.
	// Example: argocd-system
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="namespace is immutable"
	// +kubebuilder:validation:XValidation:rule=`self.matches("^[a-z0-9]([a-z0-9-]*[a-z0-9])?$")`,message="namespace must be a valid DNS1123 label"
	// +required
	Namespace string `json:"namespace"`

	// serviceAccount names the identity that manages the content of this
	// extension. Every read and write of that content is made as this
	// ServiceAccount, so what it may not do does not happen.
	//
	// +required
	ServiceAccount ServiceAccountReference `json:"serviceAccount"`

	// source says where the content comes from.
	//
	// Example: {sourceType: Catalog, catalog: {packageName: argocd-operator, version: 0.x}}
	//
	// +required
	Source SourceConfig `json:"source"`

	// install changes how content is installed and upgraded. Left out, the
	// defaults described in its fields hold.
	//
	// +optional
	Install *ClusterExtensionInstallConfig `json:"install,omitempty"`

	// uninstall says what becomes of content when the extension is deleted. It
	// can be changed until then, and while the deletion waits. Left out, the
	// controller's flag --default-uninstall-policy holds, which is Delete unless
	// it says otherwise: everything goes. An addition to the API of the reference
	// implementation.
	//
	// +optional
	Uninstall *ClusterExtensionUninstallConfig `json:"uninstall,omitempty"`

	// config is handed to the bundle, which defines what it accepts. What it
	// does not accept is reported as Progressing=False with the reason
	// InvalidConfiguration. Left out, the bundle's own defaults hold.
	//
	// +optional
	Config *ClusterExtensionConfig `json:"config,omitempty"`

	// progressDeadlineMinutes is how long a rollout may go on, in minutes,
	// before it is reported as Progressing=False with the reason
	// ProgressDeadlineExceeded.
	//
	// From 10 to 720. Left out, there is no deadline.
	//
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=720
	// +optional
	ProgressDeadlineMinutes int32 `json:"progressDeadlineMinutes,omitempty"`

	// suspend says that nothing of the content is written: no installation, no
	// upgrade and no repair. What is under way stops at the next object. An addition
	// to the API of the reference implementation.
	//
	// All else goes on: a bundle is chosen, what runs is watched, and status tells
	// of both. Certificates of webhooks that the controller has issued are renewed,
	// and the extension can be deleted. Left out, false.
	//
	// +optional
	Suspend bool `json:"suspend,omitempty"`
}

// ServiceAccountReference names a ServiceAccount in spec.namespace.
type ServiceAccountReference struct {
	// name of a ServiceAccount in spec.namespace. It has to exist and to hold
	// the rights that the content needs; what it lacks is listed in status.
	//
	// Required and immutable. A DNS-1123 subdomain: at most 253 lower-case
	// letters, digits, hyphens and periods, with a letter or digit at both
	// ends of each part.
	// Example: argocd-installer
	//
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="name is immutable"
	// +kubebuilder:validation:XValidation:rule=`self.matches("^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$")`,message="name must be a valid DNS1123 subdomain. It must contain only lowercase alphanumeric characters, hyphens (-) or periods (.), start and end with an alphanumeric character, and be no longer than 253 characters"
	// +required
	Name string `json:"name"`
}

// Package is the package of an extension: that of the spec or, where the bundle alone says it,
// that of what is installed; empty if nothing is.
func (e *ClusterExtension) Package() string {
	switch {
	case e.Spec.Source.Catalog != nil:
		return e.Spec.Source.Catalog.PackageName
	case e.Status.Install != nil:
		return e.Status.Install.PackageName
	}
	return ""
}

// MigratedFrom is the Subscription of classic OLM that an extension has been made from, by
// [MigratedFromSubscriptionAnnotation]; false if it says of none, or if that cannot be one.
func (e *ClusterExtension) MigratedFrom() (types.NamespacedName, bool) {
	namespace, name, isName := strings.Cut(e.Annotations[MigratedFromSubscriptionAnnotation], "/")
	if !isName || namespace == "" || name == "" || strings.Contains(name, "/") {
		return types.NamespacedName{}, false
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, true
}

// SourceTypeCatalog takes the content of an extension from a catalog.
const SourceTypeCatalog = "Catalog"

// SourceTypeBundle takes the content of an extension from the image of one bundle. An
// addition to the API of the reference implementation.
const SourceTypeBundle = "Bundle"

// SourceConfig is a union: sourceType says which one of the other fields is
// set.
//
// +union
// +kubebuilder:validation:XValidation:rule="(self.sourceType == 'Catalog') == has(self.catalog)",message="catalog is required when sourceType is Catalog, and forbidden otherwise"
// +kubebuilder:validation:XValidation:rule="(self.sourceType == 'Bundle') == has(self.bundle)",message="bundle is required when sourceType is Bundle, and forbidden otherwise"
type SourceConfig struct {
	// sourceType is the kind of source. Catalog chooses a bundle out of catalogs, and
	// requires the field catalog. Bundle names one by its image, and requires the field
	// bundle; it is an addition to the API of the reference implementation.
	//
	// +unionDiscriminator
	// +kubebuilder:validation:Enum=Catalog;Bundle
	// +required
	SourceType string `json:"sourceType"`

	// catalog chooses a bundle out of the ClusterCatalogs of this cluster.
	// Required when sourceType is Catalog, forbidden otherwise.
	//
	// +optional
	Catalog *CatalogFilter `json:"catalog,omitempty"`

	// bundle is the bundle itself, which need not be in any catalog. Required when
	// sourceType is Bundle, forbidden otherwise. An addition to the API of the
	// reference implementation.
	//
	// +optional
	Bundle *BundleSource `json:"bundle,omitempty"`
}

// BundleSource is a bundle by its image. Whoever writes it decides about upgrades: another
// image is gone to whatever its version is, as long as it is of the package that is installed.
type BundleSource struct {
	// ref is the image: registry, repository, and a tag or a digest. The
	// registry has to be spelled out. Which package and which version it is, the bundle
	// says itself.
	//
	// A tag is looked up once for each generation of the extension, and what it stood for
	// stays installed when it is moved. At most 1000 characters.
	// Example: my-registry.example:8080/operators/argocd@sha256:200d4ddb2a73594b91358fe6397424e975205bfbe44614f5846033cad64b3f05
	//
	// +kubebuilder:validation:MaxLength=1000
	// +kubebuilder:validation:XValidation:rule=`self.matches("^[A-Za-z0-9]+\\b")`,message="must start with a valid domain. valid domains must be alphanumeric characters (lowercase and uppercase) separated by the \".\" character."
	// +kubebuilder:validation:XValidation:rule=`self.matches("/[a-z0-9]")`,message="a valid name is required. valid names must contain lowercase alphanumeric characters separated only by the \".\", \"_\", \"__\", \"-\" characters."
	// +kubebuilder:validation:XValidation:rule=`self.contains(":")`,message="must end with a digest or a tag"
	// +kubebuilder:validation:XValidation:rule=`self.matches("@.*:") || self.substring(self.lastIndexOf(":") + 1).size() <= 127 || !self.contains(":")`,message="tag is invalid. the tag must not be more than 127 characters"
	// +kubebuilder:validation:XValidation:rule=`self.matches("@.*:") || self.matches(":\\w[\\w.-]*$") || !self.contains(":")`,message="tag is invalid. valid tags must begin with a word character (alphanumeric + \"_\") followed by word characters or \".\", and \"-\" characters"
	// +kubebuilder:validation:XValidation:rule=`!self.matches("@.*:") || self.matches("@[A-Za-z][A-Za-z0-9]*([-_+.][A-Za-z][A-Za-z0-9]*)*:")`,message="digest algorithm is not valid. valid algorithms must start with an uppercase or lowercase alpha character followed by alphanumeric characters and may contain the \"-\", \"_\", \"+\", and \".\" characters."
	// +kubebuilder:validation:XValidation:rule=`!self.matches("@.*:") || self.substring(self.indexOf(":") + 1).size() >= 32`,message="digest is not valid. the encoded string must be at least 32 characters"
	// +kubebuilder:validation:XValidation:rule=`!self.matches("@.*:") || self.matches(":[0-9A-Fa-f]*$")`,message="digest is not valid. the encoded string must only contain hex characters (A-F, a-f, 0-9)"
	// +required
	Ref string `json:"ref"`
}

// UpgradeConstraintPolicy says which versions may follow the installed one.
//
// +kubebuilder:validation:Enum=CatalogProvided;SelfCertified
type UpgradeConstraintPolicy string

const (
	// UpgradeConstraintPolicyCatalogProvided upgrades along the edges that the
	// package author put into the catalog, and nowhere else.
	UpgradeConstraintPolicyCatalogProvided UpgradeConstraintPolicy = "CatalogProvided"

	// UpgradeConstraintPolicySelfCertified moves to any version that matches
	// the other fields, also down.
	UpgradeConstraintPolicySelfCertified UpgradeConstraintPolicy = "SelfCertified"
)

// UpgradeApproval says whether somebody has to agree to an upgrade.
//
// +kubebuilder:validation:Enum=Automatic;Manual
type UpgradeApproval string

const (
	// UpgradeApprovalAutomatic lets upgrades go as soon as a catalog has them.
	UpgradeApprovalAutomatic UpgradeApproval = "Automatic"

	// UpgradeApprovalManual lets each upgrade wait for somebody who agrees.
	UpgradeApprovalManual UpgradeApproval = "Manual"
)

// CatalogFilter narrows the bundles of all catalogs down to the wanted one.
//
// +kubebuilder:validation:XValidation:rule="!has(self.approvedDigest) || has(self.approvedVersion)",message="approvedVersion is required when approvedDigest is specified"
type CatalogFilter struct {
	// packageName is the package to install.
	//
	// Required and immutable: another package is another extension. A DNS-1123
	// subdomain of at most 253 characters.
	// Example: argocd-operator
	//
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="packageName is immutable"
	// +kubebuilder:validation:XValidation:rule=`self.matches("^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$")`,message="packageName must be a valid DNS1123 subdomain. It must contain only lowercase alphanumeric characters, hyphens (-) or periods (.), start and end with an alphanumeric character, and be no longer than 253 characters"
	// +required
	PackageName string `json:"packageName"`

	// The rule also takes "*]" for "*", and "|" for the first part: the published
	// API lets both pass, so stored manifests may hold them. Neither is a range,
	// which the version parser finds out later.

	// version is a version or a range of versions; the highest one that can be
	// reached is installed, and upgrades within the range are automatic unless
	// upgradeApproval is Manual. A single version pins the extension.
	//
	// At most 64 characters. Comparisons are joined by space or comma (all
	// have to hold) and by || (one has to hold). A comparison is an optional
	// operator and a version of one to three parts, of which x, X and * match
	// anything:
	//   - 1.2.3 is that version.
	//   - 1.2 and 1.2.x are 1.2.0 or higher, below 1.3.0.
	//   - >=1.2.0 <2.0.0 is what lies between; there are = != > < <= as well.
	//   - ~1.2.3 is 1.2.3 or higher, below 1.3.0.
	//   - ^1.2.3 is 1.2.3 or higher, below 2.0.0.
	//   - ^1.2 || ^3 is either one.
	//
	// A pre-release is only chosen by a comparison that has one, as in
	// >=1.0.0-0. Left out, every version matches, pre-releases too.
	//
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule=`self.matches("^\\s*(=|!=|>|<|>=|=>|<=|=<|~|~>|\\^)?\\s*v?(0|[1-9]\\d*|[xX|]|\\*\\]?)(\\.(0|[1-9]\\d*|[xX]|\\*\\]?)){0,2}(-[0-9A-Za-z-]+(\\.[0-9A-Za-z-]+)*)?(\\+[0-9A-Za-z-]+(\\.[0-9A-Za-z-]+)*)?((\\s+|\\s*,\\s*|\\s*\\|\\|\\s*)(=|!=|>|<|>=|=>|<=|=<|~|~>|\\^)?\\s*v?(0|[1-9]\\d*|[xX]|\\*\\]?)(\\.(0|[1-9]\\d*|[xX]|\\*\\]?)){0,2}(-[0-9A-Za-z-]+(\\.[0-9A-Za-z-]+)*)?(\\+[0-9A-Za-z-]+(\\.[0-9A-Za-z-]+)*)?)*\\s*$")`,message="invalid version expression"
	// +optional
	Version string `json:"version,omitempty"`

	// channels narrows the choice to bundles of these channels, and upgrades
	// to the edges within them.
	//
	// At most 256 names, each a DNS-1123 subdomain of at most 253 characters;
	// their order does not matter. Left out, all channels of the package
	// count.
	// Example: [stable, stable-v2]
	//
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:XValidation:rule=`self.matches("^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$")`,message="channels entries must be valid DNS1123 subdomains"
	// +optional
	Channels []string `json:"channels,omitempty"`

	// selector chooses ClusterCatalogs by their labels. Every catalog carries
	// its own name as the label olm.operatorframework.io/metadata.name.
	//
	// Left out or empty, all catalogs count.
	// Example: {matchLabels: {olm.operatorframework.io/metadata.name: operatorhubio}}
	//
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`

	// upgradeConstraintPolicy says which versions may follow the installed
	// one.
	//
	// CatalogProvided follows the upgrade edges of the package author.
	// SelfCertified ignores them and also goes back to lower versions; what
	// happens to data then is for you to know. Left out, CatalogProvided.
	//
	// +kubebuilder:default=CatalogProvided
	// +optional
	UpgradeConstraintPolicy UpgradeConstraintPolicy `json:"upgradeConstraintPolicy,omitempty"`

	// upgradeApproval says whether somebody has to agree to each upgrade. An addition
	// to the API of the reference implementation.
	//
	// Automatic upgrades as soon as a catalog has a bundle that the other fields
	// allow. Manual installs once, and then waits before it goes to any other bundle
	// or image until approvedVersion is its version; status.pending says what it
	// waits with. What is installed is kept healthy meanwhile, and a change of
	// spec.config does not wait. Left out, Automatic.
	//
	// +optional
	UpgradeApproval UpgradeApproval `json:"upgradeApproval,omitempty"`

	// approvedVersion is the version of the bundle that is agreed to. It is no range,
	// and says nothing about any other version. An addition to the API of the
	// reference implementation.
	//
	// It answers upgradeApproval, and spec.install.preflight.permissions as well.
	// Where upgradeApproval is Manual, this version is installed first, and is gone
	// to before any higher one that is not agreed to, as long as the other fields
	// allow it.
	// Example: 1.2.3
	//
	// +kubebuilder:validation:XValidation:rule=`self.matches("^(0|[1-9][0-9]*)(\\.(0|[1-9][0-9]*)){2}(-[0-9A-Za-z-]+(\\.[0-9A-Za-z-]+)*)?(\\+[0-9A-Za-z-]+(\\.[0-9A-Za-z-]+)*)?$")`,message="approvedVersion must be one semantic version, such as 1.2.3, and no range"
	// +kubebuilder:validation:MaxLength=253
	// +optional
	ApprovedVersion string `json:"approvedVersion,omitempty"`

	// approvedDigest is the digest of the image of the bundle that is agreed to.
	// Where upgrades wait, a bundle of approvedVersion with another one does. It takes approvedVersion. An
	// addition to the API of the reference implementation.
	//
	// Left out, approvedVersion is agreed to whatever its image is, until it is
	// installed: another image of the same version waits again.
	// Example: sha256:6ae41a6e1a5ba4d8d4f4a3b0c1a9f0d25e7f83c2b94d61e5a7f0c3d2b1a09f8e
	//
	// +kubebuilder:validation:MaxLength=135
	// +kubebuilder:validation:XValidation:rule=`self.matches("^(sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128})$")`,message="approvedDigest must be sha256 or sha512, a colon, and 64 or 128 hexadecimal digits"
	// +optional
	ApprovedDigest string `json:"approvedDigest,omitempty"`
}

// ClusterExtensionInstallConfig changes how content is installed.
//
// +kubebuilder:validation:XValidation:rule="has(self.preflight) || has(self.replaceImmutable)",message="at least one of [preflight replaceImmutable] are required when install is specified"
type ClusterExtensionInstallConfig struct {
	// preflight configures the checks that run before anything is written. It
	// replaces the default configuration as a whole.
	//
	// +optional
	Preflight *PreflightConfig `json:"preflight,omitempty"`

	// replaceImmutable are the kinds whose objects are deleted and created again
	// when an upgrade or a repair has to change a field that Kubernetes lets
	// nobody change, such as the selector of a Deployment. An addition to the API
	// of the reference implementation.
	//
	// What runs is interrupted: the pods of a workload go with it, a Service can
	// get another address, and rights are missing for a moment. Kinds that hold
	// data cannot be listed. A StatefulSet that would take its volumes with it is
	// left alone all the same. Left out, such an upgrade waits, and the condition
	// Progressing has the reason Blocked.
	// Example: [Deployment]
	//
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +optional
	ReplaceImmutable []ReplaceableKind `json:"replaceImmutable,omitempty"`
}

// ReplaceableKind is a kind of Kubernetes whose objects hold nothing that the
// bundle or the cluster could not make again.
//
// +kubebuilder:validation:Enum=ClusterRoleBinding;DaemonSet;Deployment;Job;PriorityClass;RoleBinding;Service;StatefulSet;StorageClass
type ReplaceableKind string

// PreflightConfig configures the checks that run before anything is written.
//
// +kubebuilder:validation:XValidation:rule="has(self.crdUpgradeSafety) || has(self.permissions)",message="at least one of [crdUpgradeSafety permissions] are required when preflight is specified"
type PreflightConfig struct {
	// crdUpgradeSafety configures the check that refuses an upgrade whose
	// CustomResourceDefinitions would break custom resources that exist.
	//
	// +optional
	CRDUpgradeSafety *CRDUpgradeSafetyPreflightConfig `json:"crdUpgradeSafety,omitempty"`

	// permissions configures what becomes of an upgrade after which the operator
	// itself may do more than before. An addition to the API of the reference
	// implementation.
	//
	// +optional
	Permissions *PermissionsPreflightConfig `json:"permissions,omitempty"`
}

// CRDUpgradeSafetyEnforcement says whether the CRD upgrade safety check runs.
//
// +kubebuilder:validation:Enum=None;Warn;Strict
type CRDUpgradeSafetyEnforcement string

const (
	// CRDUpgradeSafetyEnforcementNone skips the check.
	CRDUpgradeSafetyEnforcementNone CRDUpgradeSafetyEnforcement = "None"

	// CRDUpgradeSafetyEnforcementWarn runs the check; findings are told in an
	// event and stop nothing. An addition to the API of the reference
	// implementation.
	CRDUpgradeSafetyEnforcementWarn CRDUpgradeSafetyEnforcement = "Warn"

	// CRDUpgradeSafetyEnforcementStrict runs the check; a finding stops the
	// upgrade.
	CRDUpgradeSafetyEnforcementStrict CRDUpgradeSafetyEnforcement = "Strict"
)

// CRDUpgradeSafetyPreflightConfig configures the CRD upgrade safety check.
type CRDUpgradeSafetyPreflightConfig struct {
	// enforcement says what the check does.
	//
	// Strict runs it, and a finding stops the upgrade. Warn runs it and tells
	// the findings in an event. None skips it, which can lose data. Where
	// crdUpgradeSafety is left out, Strict.
	//
	// +required
	Enforcement CRDUpgradeSafetyEnforcement `json:"enforcement"`

	// exceptions are findings that do not stop an upgrade, although enforcement
	// is Strict. An addition to the API of the reference implementation.
	//
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	// +optional
	Exceptions []CRDUpgradeSafetyException `json:"exceptions,omitempty"`
}

// CRDUpgradeSafetyException selects findings of the CRD upgrade safety check.
//
// +kubebuilder:validation:XValidation:rule="has(self.crd) || has(self.check)",message="at least one of [crd check] are required in an exception"
type CRDUpgradeSafetyException struct {
	// crd is the name of the CustomResourceDefinition that the findings are
	// about; left out, any.
	// Example: samples.example.com
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	CRD string `json:"crd,omitempty"`

	// check is the check that made the findings, as their messages name it; left
	// out, any.
	// Example: existingFieldRemoval
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Check string `json:"check,omitempty"`
}

// PermissionGrowthPolicy says what becomes of an upgrade after which the
// operator may do more.
//
// +kubebuilder:validation:Enum=Allow;Approve
type PermissionGrowthPolicy string

const (
	// PermissionGrowthAllow lets it go on.
	PermissionGrowthAllow PermissionGrowthPolicy = "Allow"

	// PermissionGrowthApprove lets it wait for approval.
	PermissionGrowthApprove PermissionGrowthPolicy = "Approve"
)

// PermissionsPreflightConfig configures what becomes of an upgrade after which
// the operator itself may do more than before.
//
// +kubebuilder:validation:XValidation:rule="!has(self.approvedDigest) || has(self.approvedVersion)",message="approvedVersion is required when approvedDigest is specified"
type PermissionsPreflightConfig struct {
	// growth says what becomes of an upgrade whose bundle gives its own
	// ServiceAccounts rights that the installed bundle does not give them.
	//
	// Allow lets it go on, and tells the rights in an event. Approve lets it
	// wait until approvedVersion is its version; the installed bundle stays in
	// place and is kept healthy, and the condition Ready says what would be
	// granted. Where permissions is left out, Allow.
	//
	// +required
	Growth PermissionGrowthPolicy `json:"growth"`

	// approvedVersion is the version of the bundle whose rights are approved.
	// It says nothing about any other version. spec.source.catalog.approvedVersion
	// answers this, too. Where spec.source.bundle names an image, it takes approvedDigest:
	// the version is only what that image says of itself.
	// Example: 1.2.3
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	ApprovedVersion string `json:"approvedVersion,omitempty"`

	// approvedDigest is the digest of the image whose rights are approved under
	// approvedVersion, which it takes. Left out, those of any image of a catalog are, and of no
	// image that spec.source.bundle names. An addition to the API of the reference implementation.
	// Example: sha256:6ae41a6e1a5ba4d8d4f4a3b0c1a9f0d25e7f83c2b94d61e5a7f0c3d2b1a09f8e
	//
	// +kubebuilder:validation:MaxLength=135
	// +kubebuilder:validation:XValidation:rule=`self.matches("^(sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128})$")`,message="approvedDigest must be sha256 or sha512, a colon, and 64 or 128 hexadecimal digits"
	// +optional
	ApprovedDigest string `json:"approvedDigest,omitempty"`
}

// ClusterExtensionConfigType says in which form configuration is given.
//
// +kubebuilder:validation:Enum=Inline
type ClusterExtensionConfigType string

// ClusterExtensionConfigTypeInline is configuration written into the
// ClusterExtension itself.
const ClusterExtensionConfigTypeInline ClusterExtensionConfigType = "Inline"

// ClusterExtensionConfig is a union: configType says which one of the other
// fields is set.
//
// +union
// +kubebuilder:validation:XValidation:rule="(self.configType == 'Inline') == has(self.inline)",message="inline is required when configType is Inline, and forbidden otherwise"
type ClusterExtensionConfig struct {
	// configType is the form the configuration has. The only value is Inline,
	// which requires the field inline.
	//
	// +unionDiscriminator
	// +required
	ConfigType ClusterExtensionConfigType `json:"configType"`

	// inline is the configuration: an object with at least one property, whose
	// properties the bundle defines.
	// Example: {watchNamespace: team-a}
	//
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:MinProperties=1
	// +optional
	Inline *apiextensionsv1.JSON `json:"inline,omitempty"`
}

// ClusterExtensionStatus is what the controller found and did.
type ClusterExtensionStatus struct {
	// observedGeneration is the metadata.generation that this status is about.
	// While it is lower than metadata.generation, a change of spec has not
	// been looked at yet. It is -1 until the first look.
	//
	// +kubebuilder:validation:Minimum=-1
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions say how things stand:
	//   - Installed is True while a bundle is installed (Succeeded), False while
	//     none is (Failed, Absent), Unknown when it cannot be told (Failed).
	//   - Progressing is True at rest (Succeeded) and at work (RollingOut,
	//     Retrying). It is False when a person has to act (Blocked,
	//     InvalidConfiguration, ProgressDeadlineExceeded).
	//   - Ready is True when all is as wanted and the workloads are available
	//     (Succeeded), also while an upgrade waits for an approval that the spec
	//     asks for (ApprovalPending), while the operator that is installed refuses it
	//     (UpgradeHeld), or while nothing is written because the spec
	//     says so (Suspended), Unknown while nothing is amiss but an
	//     installation, an upgrade or a rollout takes its time (RollingOut), or when
	//     it cannot be told (AvailabilityUnknown), False otherwise. Its message says
	//     which newer bundles were left out and why, what they require, and who
	//     requires this one; while the extension is being deleted (Terminating, Orphaning,
	//     DeletionBlocked), on what that waits.
	//   - Available is True while all Deployments of the installed bundle serve
	//     (Available), False while one does not (Unavailable), Unknown when that
	//     cannot be told (AvailabilityUnknown) or nothing is installed (Absent).
	//   - Reconciling is True while work goes on (RollingOut, Retrying, Terminating, Orphaning),
	//     and absent otherwise.
	//   - Stalled is True while a person has to act: nothing is tried again (Blocked,
	//     InvalidConfiguration), a rollout has failed (RolloutFailed), the deadline
	//     of the spec has passed (ProgressDeadlineExceeded), a deletion is held up by
	//     the uninstall policy (DeletionBlocked, Orphaning), or for two minutes each
	//     try, or each look, has come to the same (Retrying, Unavailable,
	//     AvailabilityUnknown). It is absent otherwise.
	//   - Suspended is True while spec.suspend is (UserRequested), and absent
	//     otherwise.
	//   - PackageDeprecated, ChannelDeprecated and BundleDeprecated are True
	//     (Deprecated) or False (NotDeprecated) as the catalog has it, and
	//     Unknown without catalog data (DeprecationStatusUnknown) or without a
	//     bundle (Absent).
	//   - Deprecated sums up these three.
	//
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// install is what is installed. It is absent while nothing is.
	//
	// +optional
	Install *ClusterExtensionInstallStatus `json:"install,omitempty"`

	// pending is the upgrade that waits for an approval. It is absent while none
	// does. An addition to the API of the reference implementation.
	//
	// +optional
	Pending *PendingUpgrade `json:"pending,omitempty"`

	// resolvedSource is what the image of spec.source.bundle was found to be. It is absent
	// where catalogs are named, and until somebody has looked. An addition to the API of the
	// reference implementation.
	//
	// +optional
	ResolvedSource *ResolvedBundleSource `json:"resolvedSource,omitempty"`
}

// ResolvedBundleSource is what an image was found to be when it was looked up.
type ResolvedBundleSource struct {
	// ref is the reference that was looked up.
	//
	// +kubebuilder:validation:MaxLength=1000
	// +required
	Ref string `json:"ref"`

	// digest is that of the image. A tag stands for it until the spec changes and, once it is
	// installed, for as long as it is.
	//
	// +kubebuilder:validation:MaxLength=135
	// +required
	Digest string `json:"digest"`
}

// PendingUpgrade is an upgrade that waits for an approval.
type PendingUpgrade struct {
	// bundle is the one that would be installed.
	//
	// +required
	Bundle BundleMetadata `json:"bundle"`

	// digest is that of the image of the bundle. It is absent while it is not known:
	// the catalog names the image by a tag, and it was not pulled yet.
	//
	// +optional
	Digest string `json:"digest,omitempty"`

	// since is when the controller first saw that this bundle, with this digest,
	// waits.
	//
	// +required
	Since metav1.Time `json:"since"`

	// planSummary says in one line what the upgrade would do: how many objects it
	// creates, changes and deletes, the first of them by name, and what is worth a look
	// before somebody agrees. It is made once, when the upgrade comes to wait, and
	// after each change of the spec. It is absent until then.
	//
	// +kubebuilder:validation:MaxLength:=4096
	// +optional
	PlanSummary string `json:"planSummary,omitempty"`
}

// ClusterExtensionInstallStatus is what is installed.
type ClusterExtensionInstallStatus struct {
	// bundle is the installed bundle.
	//
	// +required
	Bundle BundleMetadata `json:"bundle"`

	// packageName is the package of the installed bundle, where spec.source does not say
	// it. An addition to the API of the reference implementation.
	//
	// +optional
	PackageName string `json:"packageName,omitempty"`
}

// BundleMetadata identifies a bundle within its package.
type BundleMetadata struct {
	// name of the bundle, exactly as the catalog has it.
	//
	// +required
	Name string `json:"name"`

	// version of the bundle, a semantic version.
	//
	// +kubebuilder:validation:XValidation:rule=`self.matches("^[0-9]+")`,message="version must be well-formed semver"
	// +required
	Version string `json:"version"`

	// release orders bundles that have the same version. It is absent where
	// the catalog does not state a release apart from the version.
	//
	// +kubebuilder:validation:XValidation:rule=`self.matches("^$|^(0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)(\\.(0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*))*$")`,message="release must be empty or consist of dot-separated identifiers (numeric without leading zeros, or alphanumeric)"
	// +optional
	Release *string `json:"release,omitempty"`
}
