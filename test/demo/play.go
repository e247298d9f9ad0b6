package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/test/environment"
	"github.com/clusterextensions/operator-controller/test/operator"
)

const (
	catalogName   = "sample"
	extensionName = operator.Package
	poll          = 100 * time.Millisecond
)

type demo struct {
	env *environment.Environment

	// shown is what each condition said when it was last printed.
	shown map[string]string
}

func (d *demo) play(ctx context.Context) error {
	for _, scene := range []func(context.Context) error{d.publish, d.install, d.upgrade, d.look} {
		if err := scene(ctx); err != nil {
			return err
		}
	}
	return nil
}

// publish pushes the bundles and their catalog, and makes a ClusterCatalog.
func (d *demo) publish(ctx context.Context) error {
	d.shown = map[string]string{}
	say("Pushing the sample operator and its catalog, creating a ClusterCatalog")
	for _, version := range []string{"1.0.0", "1.1.0", "2.0.0"} {
		files, err := operator.Bundle(version)
		if err != nil {
			return err
		}
		if err := d.env.PushBundle(ctx, operator.Package+":v"+version, files); err != nil {
			return err
		}
	}
	if err := d.env.PushCatalog(ctx, "sample-catalog:v1", operator.Catalog); err != nil {
		return err
	}
	if err := d.env.CreateCatalog(ctx, catalogName, operator.Registry+"/sample-catalog:v1"); err != nil {
		return err
	}
	return d.follow(ctx, func(ctx context.Context) ([]metav1.Condition, bool, error) {
		catalog := &ocv1.ClusterCatalog{}
		err := d.env.Admin.Get(ctx, client.ObjectKey{Name: catalogName}, catalog)
		return catalog.Status.Conditions, meta.IsStatusConditionTrue(catalog.Status.Conditions, ocv1.TypeServing), err
	})
}

func (d *demo) install(ctx context.Context) error {
	d.shown = map[string]string{}
	say("Creating the namespace, a ServiceAccount with the permissions it needs, and a ClusterExtension for version 1.0.0")
	if _, err := d.env.KubectlOutput(ctx, string(operator.Installer), "apply", "--server-side", "-f", "-"); err != nil {
		return err
	}
	extension := environment.Extension(extensionName, operator.Package, operator.ServiceAccount, func(e *ocv1.ClusterExtension) {
		e.Spec.Source.Catalog.Version = "1.0.0"
	})
	if err := d.env.Admin.Create(ctx, extension); err != nil {
		return fmt.Errorf("creating the ClusterExtension: %w", err)
	}
	return d.followTo(ctx, "1.0.0")
}

func (d *demo) upgrade(ctx context.Context) error {
	say("Asking for version 1.1.0")
	err := d.env.Update(ctx, extensionName, func(e *ocv1.ClusterExtension) { e.Spec.Source.Catalog.Version = "1.1.0" })
	if err != nil {
		return err
	}
	return d.followTo(ctx, "1.1.0")
}

func (d *demo) look(ctx context.Context) error {
	say("What is installed")
	for _, args := range [][]string{
		{"get", "clusterextensions,clustercatalogs"},
		{"get", "deployments,services,configmaps,serviceaccounts", "-n", operator.Namespace, "-l", "olm.operatorframework.io/owner-name=" + extensionName},
		{"get", "crds,clusterroles,clusterrolebindings", "-l", "olm.operatorframework.io/owner-name=" + extensionName},
	} {
		output, err := d.env.KubectlOutput(ctx, "", args...)
		if err != nil {
			return err
		}
		fmt.Fprintf(os.Stdout, "\n$ kubectl %s\n%s", strings.Join(args, " "), output)
	}
	return nil
}

// followTo prints the conditions as they change until a version is installed and Ready.
func (d *demo) followTo(ctx context.Context, version string) error {
	return d.follow(ctx, func(ctx context.Context) ([]metav1.Condition, bool, error) {
		extension := &ocv1.ClusterExtension{}
		err := d.env.Admin.Get(ctx, client.ObjectKey{Name: extensionName}, extension)
		status := extension.Status
		isInstalled := status.Install != nil && status.Install.Bundle.Version == version && status.ObservedGeneration == extension.Generation
		return status.Conditions, isInstalled && meta.IsStatusConditionTrue(status.Conditions, ocv1.TypeReady), err
	})
}

func (d *demo) follow(ctx context.Context, look func(context.Context) ([]metav1.Condition, bool, error)) error {
	for {
		conditions, done, err := look(ctx)
		if err != nil {
			return err
		}
		d.print(conditions)
		if done {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for the status: %w", ctx.Err())
		case <-time.After(poll):
		}
	}
}

func (d *demo) print(conditions []metav1.Condition) {
	for _, condition := range conditions {
		text := fmt.Sprintf("%-18s %-8s %-24s %s", condition.Type, condition.Status, condition.Reason, condition.Message)
		if d.shown[condition.Type] != text {
			d.shown[condition.Type] = text
			fmt.Println("   ", text)
		}
	}
}
