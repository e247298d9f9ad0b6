package v1

// Condition types of a ClusterExtension. All are set by the extension
// reconciler, in every pass unless they say that they may be absent.
const (
	// TypeInstalled says whether a bundle is installed, from the evidence of
	// release records. It is True while any version is installed, also while
	// an upgrade fails. Reasons: Succeeded, Failed, Absent.
	TypeInstalled = "Installed"

	// TypeProgressing says whether the way to the wanted state is open. Set by
	// the extension reconciler and by the catalog reconciler. True is the
	// state at rest (Succeeded) and while work goes on (RollingOut, Retrying);
	// of an extension, Succeeded says that its content is applied, and nothing
	// about how its workloads do;
	// False means that nothing happens until a person acts (Blocked,
	// InvalidConfiguration, ProgressDeadlineExceeded).
	TypeProgressing = "Progressing"

	// TypeReady says whether all is as wanted, and tells in its message what the
	// other conditions leave open: which newer bundles were left out and why,
	// what they require, and who requires this extension. It has the reasons of
	// Progressing, those of Available, and RolloutFailed, ApprovalPending, UpgradeHeld,
	// Suspended, Terminating, Orphaning and DeletionBlocked. It is Unknown while nothing
	// is amiss but work goes on, and while
	// the release records cannot be read. It is an addition to the API of the
	// reference implementation.
	TypeReady = "Ready"

	// TypeAvailable says whether the Deployments of the installed bundle serve. It
	// is Unknown while nothing is installed, or as long as a Deployment does not
	// say. Reasons: Available, Unavailable, AvailabilityUnknown, Absent. It is an
	// addition to the API of the reference implementation.
	TypeAvailable = "Available"

	// TypeReconciling is True while work for the present spec goes on, and absent
	// otherwise, as kstatus has it. Reasons: RollingOut, Retrying, Terminating, Orphaning, Pulling of a catalog. It is
	// an addition to the API of the reference implementation.
	TypeReconciling = "Reconciling"

	// TypeStalled is True while a person has to act, and absent otherwise, as
	// kstatus has it. That is so when nothing is tried again (Blocked,
	// InvalidConfiguration), when a rollout has failed (RolloutFailed), when the
	// deadline of the spec has passed (ProgressDeadlineExceeded), when a deletion
	// waits for a person (DeletionBlocked, Orphaning), and when for two
	// minutes nothing but the same has come of it (Retrying, Unavailable,
	// AvailabilityUnknown). What is tried again goes on being tried, and the
	// condition goes with the first thing that is different. It is an addition to
	// the API of the reference implementation.
	TypeStalled = "Stalled"

	// TypeSuspended is True while the spec says that nothing is to be written, and
	// absent otherwise. Reasons: UserRequested. It is an addition to the API of the
	// reference implementation.
	TypeSuspended = "Suspended"

	// TypeDeprecated sums up PackageDeprecated, ChannelDeprecated and
	// BundleDeprecated, and joins their messages. Reasons: Deprecated,
	// NotDeprecated, DeprecationStatusUnknown.
	TypeDeprecated = "Deprecated"

	// TypePackageDeprecated is True when the catalog deprecates the package.
	// Reasons: Deprecated, NotDeprecated, DeprecationStatusUnknown.
	TypePackageDeprecated = "PackageDeprecated"

	// TypeChannelDeprecated is True when the catalog deprecates one of the
	// channels in spec, or any channel when spec names none. Reasons:
	// Deprecated, NotDeprecated, DeprecationStatusUnknown.
	TypeChannelDeprecated = "ChannelDeprecated"

	// TypeBundleDeprecated is True when the catalog deprecates the installed
	// bundle. Reasons: Deprecated, NotDeprecated, DeprecationStatusUnknown,
	// Absent.
	TypeBundleDeprecated = "BundleDeprecated"
)

// Condition types of a ClusterCatalog, besides TypeProgressing, TypeReady,
// TypeReconciling and TypeStalled.
const (
	// TypeServing says whether the content of a catalog can be fetched from
	// status.urls.base. Set by the catalog reconciler; absent until the first
	// success, and untouched by later failures as the last good content stays
	// served. Reasons: Available, Unavailable, UserSpecifiedUnavailable.
	TypeServing = "Serving"

	// TypeVerified says whether the ImagePolicies accept the image of what is served, and who has
	// signed it. It is absent if no policy is about the image. Reasons: Signed, Unsigned, Refused,
	// VerificationFailed. It is an addition to the API of the reference implementation.
	TypeVerified = "Verified"

	// TypeDegraded is True while the content of the source in spec cannot be had as it is now, so that older
	// content, or none, is served. It is absent otherwise. Reasons: ContentInvalid, SourceUnavailable. It is
	// an addition to the API of the reference implementation.
	TypeDegraded = "Degraded"
)

// Reasons. Each says on which condition, with which status, and when it is
// set.
const (
	// ReasonSucceeded is set on Installed=True when a bundle is installed, and
	// on Progressing=True when nothing is left to do.
	ReasonSucceeded = "Succeeded"

	// ReasonFailed is set on Installed=False when nothing is installed and the
	// installation did not succeed, and on Installed=Unknown when the release
	// records cannot be read.
	ReasonFailed = "Failed"

	// ReasonAbsent is set on Installed=False while the first installation
	// rolls out, and on Available=Unknown and BundleDeprecated=Unknown when
	// nothing is installed.
	ReasonAbsent = "Absent"

	// ReasonRollingOut is set on Ready=Unknown and Reconciling=True while an
	// installation or an upgrade is under way, and until its workloads are rolled
	// out, as long as no error is known. It is set on Progressing=True until the
	// content is applied.
	ReasonRollingOut = "RollingOut"

	// ReasonPulling is set on Ready=Unknown and Reconciling=True while the first
	// content for a spec is on its way and no error is known.
	ReasonPulling = "Pulling"

	// ReasonRolloutFailed is set on Ready=False and Stalled=True while the cluster
	// has given up on rolling out a workload, or somebody has paused it half-way. It
	// goes when the workload gets there.
	ReasonRolloutFailed = "RolloutFailed"

	// ReasonTerminating is set on Ready=False and Reconciling=True while an
	// extension that was deleted waits for finalizers of others.
	ReasonTerminating = "Terminating"

	// ReasonOrphaning is set on Ready=False and Reconciling=True while an extension
	// that was deleted without its content waits until that belongs to it no longer. If its
	// uninstall policy protects content and that takes long, Stalled=True is in the place
	// of Reconciling.
	ReasonOrphaning = "Orphaning"

	// ReasonDeletionBlocked is set on Ready=False and Stalled=True while an extension
	// that was deleted stays because of its uninstall policy, until a person acts:
	// there are custom resources that the policy protects, or it is not known
	// whether there are, or something holds what is to go first.
	ReasonDeletionBlocked = "DeletionBlocked"

	// ReasonRetrying is set on Progressing=True after an error that may go
	// away by itself or by a change outside the object; it is tried again. When it
	// is the same for two minutes, Stalled has it instead of Reconciling.
	ReasonRetrying = "Retrying"

	// ReasonBlocked is set on Progressing=False after an error that lasts
	// until the spec or the catalog changes; it is not tried again.
	ReasonBlocked = "Blocked"

	// ReasonInvalidConfiguration is set on Progressing=False when the bundle
	// does not accept spec.config; it is not tried again until that changes.
	ReasonInvalidConfiguration = "InvalidConfiguration"

	// ReasonProgressDeadlineExceeded is set on Progressing=False and Stalled=True
	// when the work for a spec takes longer than spec.progressDeadlineMinutes.
	// The work goes on, and the reason with its end.
	ReasonProgressDeadlineExceeded = "ProgressDeadlineExceeded"

	// ReasonApprovalPending is set on Ready=True while an upgrade waits for the
	// approval that spec.source.catalog.upgradeApproval or
	// spec.install.preflight.permissions asks for. What is installed is as wanted
	// until then.
	ReasonApprovalPending = "ApprovalPending"

	// ReasonSuspended is set on Ready while spec.suspend is true: on Ready=True
	// when all workloads are available, and on Ready=False when nothing is installed.
	ReasonSuspended = "Suspended"

	// ReasonUserRequested is set on Suspended=True while spec.suspend is true.
	ReasonUserRequested = "UserRequested"

	// ReasonUpgradeHeld is set on Ready=True while the installed operator, or an
	// administrator in its place, says by its OperatorCondition that it is not to be
	// upgraded now. What is installed is as wanted until then.
	ReasonUpgradeHeld = "UpgradeHeld"

	// ReasonDeprecated is set on a deprecation condition that is True.
	ReasonDeprecated = "Deprecated"

	// ReasonNotDeprecated is set on a deprecation condition that is False:
	// catalog data was read and does not deprecate the thing.
	ReasonNotDeprecated = "NotDeprecated"

	// ReasonDeprecationStatusUnknown is set on a deprecation condition that is
	// Unknown because no catalog data could be read.
	ReasonDeprecationStatusUnknown = "DeprecationStatusUnknown"

	// ReasonAvailable is set on Serving=True when the wanted content is served,
	// and on Available=True when all workloads are.
	ReasonAvailable = "Available"

	// ReasonUnavailable is set on Serving=False when content is withdrawn
	// because the catalog is being deleted, and on Available=False and
	// Ready=False when a workload does not serve.
	ReasonUnavailable = "Unavailable"

	// ReasonAvailabilityUnknown is set on Available=Unknown and Ready=Unknown
	// when a workload does not say whether it serves.
	ReasonAvailabilityUnknown = "AvailabilityUnknown"

	// ReasonSigned is set on Verified=True when all policies that are about the image accept it.
	ReasonSigned = "Signed"

	// ReasonUnsigned is set on Verified=False when one does not accept it that only warns.
	ReasonUnsigned = "Unsigned"

	// ReasonRefused is set on Verified=False when one does not accept it that enforces what it
	// says: what is served was accepted before, and stays until there is other content.
	ReasonRefused = "Refused"

	// ReasonVerificationFailed is set on Verified=Unknown while the signatures cannot be read.
	ReasonVerificationFailed = "VerificationFailed"

	// ReasonContentInvalid is set on Degraded=True when the image was pulled, and its content cannot be used.
	ReasonContentInvalid = "ContentInvalid"

	// ReasonSourceUnavailable is set on Degraded=True when every try of two minutes or more to find out
	// whether there is newer content has failed in the same way.
	ReasonSourceUnavailable = "SourceUnavailable"

	// ReasonUserSpecifiedUnavailable is set on Serving=False, and on Ready=True of
	// a catalog, when spec.availabilityMode is Unavailable.
	ReasonUserSpecifiedUnavailable = "UserSpecifiedUnavailable"
)

// ClusterExtensionConditionTypes lists the condition types the extension
// reconciler sets in every pass, in the order status shows them. Types in
// status.conditions that are neither among these nor among those of
// [ClusterExtensionPassingConditionTypes] belong to others.
func ClusterExtensionConditionTypes() []string {
	return []string{
		TypeInstalled,
		TypeProgressing,
		TypeReady,
		TypeAvailable,
		TypeDeprecated,
		TypePackageDeprecated,
		TypeChannelDeprecated,
		TypeBundleDeprecated,
	}
}

// ClusterExtensionPassingConditionTypes lists the condition types that the
// extension reconciler sets as long as they apply, and takes away afterwards.
func ClusterExtensionPassingConditionTypes() []string {
	return []string{TypeReconciling, TypeStalled, TypeSuspended}
}

// ClusterCatalogConditionTypes lists the condition types the catalog
// reconciler owns, in the order status shows them. TypeReconciling, TypeStalled, TypeVerified and
// TypeDegraded are there as long as they apply.
func ClusterCatalogConditionTypes() []string {
	return []string{TypeServing, TypeProgressing, TypeReady, TypeReconciling, TypeStalled, TypeVerified, TypeDegraded}
}
