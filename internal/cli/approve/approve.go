// Package approve has the command by which a person agrees to an upgrade that waits.
package approve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/cli"
	"github.com/clusterextensions/operator-controller/internal/cli/program"
	"github.com/clusterextensions/operator-controller/internal/inspect"
)

// maxPatches is how often an approval is written again because the extension was changed
// otherwise in between, such as its status.
const maxPatches = 5

// planPatience is how long the plan may take, for which the bundle is pulled: the registry may
// not be reachable from where somebody approves.
const planPatience = 30 * time.Second

// approve is the command line of approve.
type approve struct {
	version string
	yes     bool
	cluster cli.Cluster
	images  cli.Images
}

// NewCommand returns the command.
func NewCommand() *cobra.Command {
	var o approve
	command := &cobra.Command{
		Use:   "approve [clusterextension/]NAME",
		Short: "Agree to an upgrade that waits for approval",
		Long: `Agree to an upgrade that waits for approval, after showing it, and the plan of what it
would do.

It sets spec.source.catalog.approvedVersion, and approvedDigest where the digest of the
image is known; where spec.source.bundle names the image, those of
spec.install.preflight.permissions. If something else is pending by the time that you agree, nothing is
written. Where manifests come from Git, set the fields there: a tool that applies them
would take back what is written here.

With --version, another version is approved than the one that is pending: it is
installed if it can be reached.

It takes the rights to get and patch the ClusterExtension, and with the policy of
config/admission the right to approve it.`,
		Example: `  kubectl extension approve sample-operator
  kubectl extension approve sample-operator --yes
  kubectl extension approve sample-operator --version 1.1.0`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("give the name of a ClusterExtension")
			}
			_, err := cli.ExtensionName(args)
			return err
		},
		RunE: o.run,
	}
	command.ValidArgsFunction = o.cluster.CompleteNames("", cobra.ShellCompDirectiveNoFileComp)
	command.Flags().StringVar(&o.version, "version", "", "Version to approve; by default the one that is pending.")
	command.Flags().BoolVarP(&o.yes, "yes", "y", false, "Do not ask.")
	cli.NoFiles(command, "version")
	o.images.Bind(command.Flags())
	o.cluster.BindInspect(command)
	return command
}

func (o *approve) run(command *cobra.Command, args []string) error {
	if command.Flags().Changed("version") {
		if _, err := bundle.ParseVersion(o.version); err != nil {
			return program.Misuse(command, fmt.Errorf("--version %q is no version, such as 1.2.3; left out, it is the one that is pending", o.version))
		}
	}
	name, extensions, err := o.cluster.NamedExtension(command, args)
	if err != nil {
		return err
	}
	ext, err := extensions.Get(command.Context(), name)
	if err != nil {
		return err
	}
	shown, err := approvalOf(ext, o.version)
	if err != nil {
		return err
	}
	if err := cli.PrintLines(command.OutOrStdout(), linesOf(ext, shown)); err != nil {
		return err
	}
	if !o.yes {
		if err := o.printPlan(command, ext.Name); err != nil {
			return err
		}
		if err := ask(command, shown); err != nil {
			return err
		}
	}
	if err := o.write(command.Context(), extensions, ext, shown); err != nil {
		return err
	}
	_, err = fmt.Fprintf(command.OutOrStdout(), "clusterextension/%s: version %s is approved\n", name, cli.Printable(shown.version))
	if ext.Spec.Suspend {
		fmt.Fprintf(command.ErrOrStderr(), "it is suspended: nothing happens until `kubectl extension resume %s`\n", name)
	}
	o.cluster.WarnAbsence(command.Context(), command)
	return err
}

// printPlan shows what `kubectl extension plan` does or, where that cannot be made, why not:
// somebody may agree all the same.
func (o *approve) printPlan(command *cobra.Command, name string) error {
	ctx, cancel := context.WithTimeout(command.Context(), planPatience)
	defer cancel()
	request := inspect.Request{Name: name, Version: o.version, Bundles: o.images.Bundles(), Certificates: cli.ClusterIssuer}
	made, err := o.cluster.Preview(ctx, request, false)
	if err != nil {
		_, err = fmt.Fprintf(command.ErrOrStderr(), "what it would do is not known: %s\n", cli.Printable(err.Error()))
		return err
	}
	fmt.Fprintln(command.OutOrStdout())
	return cli.PrintPreview(command.OutOrStdout(), made)
}

// write writes an approval, unless something else is pending by now.
func (o *approve) write(ctx context.Context, extensions *cli.Extensions, ext *ocv1.ClusterExtension, shown approval) error {
	for tries := 1; ; tries++ {
		err := extensions.Patch(ctx, ext.Name, shown.patch(ext))
		if err == nil || !apierrors.IsConflict(err) || tries >= maxPatches {
			return err
		}
		if ext, err = extensions.Get(ctx, ext.Name); err != nil {
			return err
		}
		now, err := approvalOf(ext, o.version)
		if err != nil {
			return fmt.Errorf("it was changed in between, and nothing is approved: %w", err)
		}
		if now != shown {
			return fmt.Errorf("something else is pending by now, and nothing is approved: version %q, image %q", cli.Printable(now.version), cli.Printable(now.digest))
		}
	}
}

// approval is what is agreed to. Two of the same agree to the same content.
type approval struct {
	// version and digest are what is written; digest is empty if it is not known.
	version, digest string

	// isNamed says that the spec names the image, and no catalogs.
	isNamed bool

	// uid and pending are of what was shown: the extension, and the bundle that waits.
	uid, pending string
}

// approvalOf is what a person can agree to: a version or, if it is empty, what is pending.
func approvalOf(ext *ocv1.ClusterExtension, version string) (approval, error) {
	pending, isNamed := ext.Status.Pending, ext.Spec.Source.Catalog == nil
	switch {
	case !ext.DeletionTimestamp.IsZero():
		return approval{}, fmt.Errorf("ClusterExtension %q is being deleted", ext.Name)
	case isNamed && version != "":
		return approval{}, fmt.Errorf("ClusterExtension %q names the image of its bundle: there is no other version to approve than what waits", ext.Name)
	case ext.Status.ObservedGeneration != ext.Generation:
		return approval{}, fmt.Errorf("the controller has not looked at the spec of ClusterExtension %q yet: try again", ext.Name)
	case version == "" && pending == nil:
		return approval{}, fmt.Errorf("nothing waits for approval; %s", readyOf(ext))
	case pending == nil && !isAsked(ext):
		return approval{}, fmt.Errorf("upgrades of ClusterExtension %q do not wait: spec.source.catalog.upgradeApproval is not Manual", ext.Name)
	}
	given := approval{version: version, uid: string(ext.UID), isNamed: isNamed}
	if pending != nil {
		given.pending = pending.Bundle.Name
		given.version = cmp.Or(version, pending.Bundle.Version)
		if given.version == pending.Bundle.Version {
			given.digest = pending.Digest
		}
	}
	if installed := ext.Status.Install; installed != nil && isUseless(given, ext) {
		return approval{}, fmt.Errorf("version %q is not above %q, which is installed, and is not what waits: an approval does not lead back, `kubectl extension rollback` may",
			cli.Printable(given.version), cli.Printable(installed.Bundle.Version))
	}
	if known := approvedBy(ext); given.version == known.version && given.digest == known.digest {
		return approval{}, fmt.Errorf("version %q is approved already; %s", cli.Printable(given.version), readyOf(ext))
	}
	return given, nil
}

// approvedBy has the version and the digest that are agreed to.
func approvedBy(ext *ocv1.ClusterExtension) approval {
	if catalog := ext.Spec.Source.Catalog; catalog != nil {
		return approval{version: catalog.ApprovedVersion, digest: catalog.ApprovedDigest}
	}
	if permissions := permissionsOf(ext); permissions != nil {
		return approval{version: permissions.ApprovedVersion, digest: permissions.ApprovedDigest}
	}
	return approval{}
}

// permissionsOf is nil where the spec says nothing of rights that grow.
func permissionsOf(ext *ocv1.ClusterExtension) *ocv1.PermissionsPreflightConfig {
	if install := ext.Spec.Install; install != nil && install.Preflight != nil {
		return install.Preflight.Permissions
	}
	return nil
}

// isUseless says that an approval would change nothing: it is not of what waits, and does not lead
// up.
func isUseless(given approval, ext *ocv1.ClusterExtension) bool {
	if pending := ext.Status.Pending; pending != nil && given.version == pending.Bundle.Version {
		return false
	}
	version, err := bundle.ParseVersion(given.version)
	installed, installedErr := bundle.ParseVersion(ext.Status.Install.Bundle.Version)
	return err == nil && installedErr == nil && version.Compare(installed) <= 0
}

// isAsked says that some upgrades wait.
func isAsked(ext *ocv1.ClusterExtension) bool {
	if ext.Spec.Source.Catalog.UpgradeApproval == ocv1.UpgradeApprovalManual {
		return true
	}
	permissions := permissionsOf(ext)
	return permissions != nil && permissions.Growth == ocv1.PermissionGrowthApprove
}

func readyOf(ext *ocv1.ClusterExtension) string {
	ready := meta.FindStatusCondition(ext.Status.Conditions, ocv1.TypeReady)
	if ready == nil {
		return "there is no condition Ready yet"
	}
	return fmt.Sprintf("Ready is %s %s: %s", ready.Status, ready.Reason, cli.Printable(ready.Message))
}

// patch is refused if the extension was changed since it was read. A digest of an approval from
// before goes with its version.
func (a approval) patch(ext *ocv1.ClusterExtension) map[string]any {
	digest := any(nil)
	if a.digest != "" {
		digest = a.digest
	}
	approved := map[string]any{"approvedVersion": a.version, "approvedDigest": digest}
	spec := map[string]any{"source": map[string]any{"catalog": approved}}
	if a.isNamed {
		spec = map[string]any{"install": map[string]any{"preflight": map[string]any{"permissions": approved}}}
	}
	return map[string]any{"metadata": map[string]any{"resourceVersion": ext.ResourceVersion, "uid": a.uid}, "spec": spec}
}

// linesOf show what is agreed to.
func linesOf(ext *ocv1.ClusterExtension, shown approval) []string {
	line := func(what, text string) string { return fmt.Sprintf("%-10s %s", what, cli.Printable(text)) }
	installed := "nothing"
	if ext.Status.Install != nil {
		installed = described(ext.Status.Install.Bundle)
	}
	lines := []string{line("installed:", installed)}
	if pending := ext.Status.Pending; pending != nil {
		lines = append(lines, line("pending:", fmt.Sprintf("%s, since %s", described(pending.Bundle), pending.Since.UTC().Format(time.RFC3339))))
	}
	return append(lines,
		line("approve:", fmt.Sprintf("version %q", shown.version)),
		line("image:", cmp.Or(shown.digest, "any, as its digest is not known")),
		line("status:", readyOf(ext)))
}

func described(one ocv1.BundleMetadata) string {
	return fmt.Sprintf("%q version %q", one.Name, one.Version)
}

// ask fails unless whoever is at the terminal agrees.
func ask(command *cobra.Command, shown approval) error {
	fmt.Fprintf(command.ErrOrStderr(), "Approve version %s? [y/N] ", cli.Printable(shown.version))
	agreed, err := cli.Agrees(command.Context(), command.InOrStdin())
	if err == nil && !agreed {
		err = errors.New("nothing is approved")
	}
	return err
}
