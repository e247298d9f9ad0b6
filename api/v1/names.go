package v1

// Labels.
const (
	// MetadataNameLabel holds a ClusterCatalog's own name, so that
	// spec.source.catalog.selector can choose catalogs by name. It is set on
	// every ClusterCatalog and corrected when it differs. What it says meanwhile
	// does not count: a selector sees the name.
	MetadataNameLabel = "olm.operatorframework.io/metadata.name"

	// OwnerKindLabel is on every object applied for an extension; its value is
	// ClusterExtensionKind.
	OwnerKindLabel = "olm.operatorframework.io/owner-kind"

	// OwnerNameLabel is on every object applied for an extension; its value is
	// the name of the ClusterExtension.
	OwnerNameLabel = "olm.operatorframework.io/owner-name"
)

// Finalizers. All but UninstallPolicyFinalizer guard resources of the controller (files,
// watches), and keep no content in the cluster.
const (
	// CleanupUnpackCacheFinalizer is held on a ClusterExtension until its
	// unpacked bundle images are deleted.
	CleanupUnpackCacheFinalizer = "olm.operatorframework.io/cleanup-unpack-cache"

	// CleanupContentManagerCacheFinalizer is held on a ClusterExtension until
	// the watches on its applied objects are stopped.
	CleanupContentManagerCacheFinalizer = "olm.operatorframework.io/cleanup-contentmanager-cache"

	// UninstallPolicyFinalizer is held on a ClusterExtension whose uninstall policy
	// does not delete everything at once, until that policy is carried out. It is an
	// addition to the API of the reference implementation: a controller that does not
	// know of such policies leaves it, and so the content.
	UninstallPolicyFinalizer = "olm.operatorframework.io/uninstall-policy"

	// DeleteServerCacheFinalizer is held on a ClusterCatalog until its content
	// is no longer served and its files are deleted.
	DeleteServerCacheFinalizer = "olm.operatorframework.io/delete-server-cache"
)

// Annotations.
const (
	// MigratedFromSubscriptionAnnotation says on a ClusterExtension which Subscription of classic
	// OLM it has been made from: namespace, a slash, and the name. The extension takes over in
	// place what that operator has left in the namespace of both. The key is that of the
	// reference implementation's own tool.
	MigratedFromSubscriptionAnnotation = "olm.operatorframework.io/migrated-from-subscription"

	// MigratedFromHelmReleaseAnnotation is set on a ClusterExtension that was made from a release of Helm,
	// as long as Helm has records of it. The value is the namespace of the release, a slash, and its name.
	MigratedFromHelmReleaseAnnotation = "olm.operatorframework.io/migrated-from-helm-release"

	// AdoptsContentOfAnnotation on a ClusterExtension names another ClusterExtension that was deleted, or will be,
	// with --cascade=orphan. The first one adopts the objects that the other one leaves: it updates the objects
	// that its bundle contains, and deletes all others, as in an upgrade. It is an addition to the API of upstream
	// operator-controller.
	AdoptsContentOfAnnotation = "olm.operatorframework.io/adopts-content-of"

	// MigratedFromCatalogSourceAnnotation says on a ClusterCatalog which CatalogSource of classic
	// OLM it serves in the place of: namespace, a slash, and the name.
	MigratedFromCatalogSourceAnnotation = "olm.operatorframework.io/migrated-from-catalogsource"
)
