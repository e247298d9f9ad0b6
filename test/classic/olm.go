package classic

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterextensions/operator-controller/test/cluster"
	"github.com/clusterextensions/operator-controller/test/environment"
	"github.com/clusterextensions/operator-controller/test/programs"
)

const (
	// Namespace is that of classic OLM and of its catalogs for all namespaces.
	Namespace = "olm"

	// OLMDeployment and CatalogDeployment are the Deployments of its two operators.
	OLMDeployment     = "olm-operator"
	CatalogDeployment = "catalog-operator"

	// OLMUser and CatalogUser are the names under which the API server knows the two.
	// In namespaces whose OperatorGroup has a ServiceAccount they act as that instead.
	OLMUser     = "classic-olm"
	CatalogUser = "classic-catalog"

	// fieldOwner is the field manager of what a test writes here.
	fieldOwner = client.FieldOwner("test-classic")

	// administrators may do everything, as classic OLM may on every cluster.
	administrators = "system:masters"

	pollInterval = 100 * time.Millisecond
)

// Options says how to run classic OLM.
type Options struct {
	// Logs is a folder for what its programs print. It must be there.
	Logs string
	// Interval is how often classic OLM looks at everything again; 5 minutes for its
	// olm-operator and 15 minutes for its catalog-operator if zero.
	Interval time.Duration
	// Progress is told what is being built. Default: nobody.
	Progress io.Writer
}

// OLM is classic OLM on a cluster.
type OLM struct {
	// Admin may do everything, and has the kinds of classic OLM.
	Admin client.WithWatch

	options Options
	program string
	dir     string // of the catalogs
	ended   context.CancelFunc
	follows sync.WaitGroup

	mu       sync.Mutex
	programs map[string]*program // by Deployment
	catalogs map[string]*server  // by CatalogSource
}

// program is an operator of classic OLM.
type program struct {
	command    string
	kubeconfig string
	process    *environment.Process // nil while it does not run
	err        error                // of its last start
}

// Install makes classic OLM known to a cluster, which may have begun with a snapshot that
// knows it already: its kinds, its namespaces, and its Deployments, without replicas until
// [OLM.Start].
func Install(ctx context.Context, on *cluster.Cluster, options Options) (_ *OLM, err error) {
	if options.Progress == nil {
		options.Progress = io.Discard
	}
	built, err := programs.BuildClassic(ctx, options.Progress)
	if err != nil {
		return nil, err
	}
	o := &OLM{options: options, program: built.Program, catalogs: map[string]*server{}}
	if o.dir, err = os.MkdirTemp("", "operator-controller-classic-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, o.Close())
		}
	}()
	if err := o.connect(on); err != nil {
		return nil, err
	}
	if err := o.define(ctx, built.Definitions); err != nil {
		return nil, err
	}
	if err := o.deploy(ctx); err != nil {
		return nil, err
	}
	following, end := context.WithCancel(context.WithoutCancel(ctx))
	o.ended = end
	o.follows.Go(func() { o.follow(following) })
	return o, nil
}

// connect makes the credentials of the two operators and of the tests.
func (o *OLM) connect(on *cluster.Cluster) error {
	o.programs = map[string]*program{OLMDeployment: {command: "olm"}, CatalogDeployment: {command: "catalog"}}
	for deployment, user := range map[string]string{OLMDeployment: OLMUser, CatalogDeployment: CatalogUser} {
		kubeconfig, err := on.KubeconfigFor(user, administrators)
		if err != nil {
			return err
		}
		o.programs[deployment].kubeconfig = kubeconfig
	}
	known, err := on.Client(operatorsv1.AddToScheme, v1alpha1.AddToScheme)
	if err != nil {
		return err
	}
	o.Admin, err = client.NewWithWatch(on.RESTConfig(), client.Options{Scheme: known.Scheme()})
	return err
}

// define applies the CRDs, the namespaces, and what configures classic OLM.
func (o *OLM) define(ctx context.Context, definitions string) error {
	text, err := os.ReadFile(definitions)
	if err != nil {
		return err
	}
	if err := o.applyAll(ctx, text); err != nil {
		return err
	}
	for _, name := range []string{Namespace, "operators"} {
		if err := o.createNamespace(ctx, name); err != nil {
			return err
		}
	}
	config := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "operators.coreos.com/v1", "kind": "OLMConfig", "metadata": map[string]any{"name": "cluster"},
	}}
	return o.until(ctx, "the kinds of classic OLM to be served", func(ctx context.Context) error { return o.apply(ctx, config.DeepCopy()) })
}

// applyAll applies the objects of a manifest.
func (o *OLM) applyAll(ctx context.Context, manifest []byte) error {
	return eachDocument(manifest, func(document map[string]any) error {
		return o.apply(ctx, &unstructured.Unstructured{Object: document})
	})
}

func (o *OLM) apply(ctx context.Context, object *unstructured.Unstructured) error {
	if err := o.Admin.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), fieldOwner, client.ForceOwnership); err != nil {
		return fmt.Errorf("applying %s %q: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}

func (o *OLM) createNamespace(ctx context.Context, name string) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := client.IgnoreAlreadyExists(o.Admin.Create(ctx, namespace)); err != nil {
		return fmt.Errorf("creating namespace %q: %w", name, err)
	}
	return nil
}

// deploy makes the Deployments. Their pods are simulated, if there are nodes: what runs is
// here.
func (o *OLM) deploy(ctx context.Context) error {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: "olm-operator-serviceaccount"}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "olm-operator-binding-" + Namespace},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
	}
	for _, object := range []client.Object{account, binding} {
		if err := client.IgnoreAlreadyExists(o.Admin.Create(ctx, object)); err != nil {
			return fmt.Errorf("creating %q: %w", object.GetName(), err)
		}
	}
	for name := range o.programs {
		labels := map[string]string{"app": name}
		none := int32(0)
		deployment := &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name, Labels: labels},
			Spec: appsv1.DeploymentSpec{
				Replicas: &none,
				Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels},
					Spec:       corev1.PodSpec{ServiceAccountName: account.Name, Containers: []corev1.Container{{Name: name, Image: "registry.test/olm"}}},
				},
			},
		}
		if err := client.IgnoreAlreadyExists(o.Admin.Create(ctx, deployment)); err != nil {
			return fmt.Errorf("creating Deployment %q: %w", name, err)
		}
	}
	return nil
}

// Start scales the Deployments to one, and returns when the two operators run. What they do
// is then still to come.
func (o *OLM) Start(ctx context.Context) error {
	if err := o.scale(ctx, 1); err != nil {
		return err
	}
	return o.until(ctx, "classic OLM to run", func(context.Context) error { return o.Running() })
}

// Stop scales the Deployments to zero, and returns when nothing of the two operators runs
// any more. Catalogs are served on.
func (o *OLM) Stop(ctx context.Context) error {
	if err := o.scale(ctx, 0); err != nil {
		return err
	}
	return o.until(ctx, "classic OLM to stop", func(context.Context) error {
		o.mu.Lock()
		defer o.mu.Unlock()
		for name, program := range o.programs {
			if program.process != nil {
				return fmt.Errorf("%s runs", name)
			}
		}
		return nil
	})
}

func (o *OLM) scale(ctx context.Context, replicas int) error {
	for name := range o.programs {
		deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name}}
		patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec": {"replicas": %d}}`, replicas))
		if err := o.Admin.Patch(ctx, deployment, patch); err != nil {
			return fmt.Errorf("scaling Deployment %q: %w", name, err)
		}
	}
	return nil
}

// Running is an error unless both operators run, and says which does not and why.
func (o *OLM) Running() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	var errs []error
	for name, program := range o.programs {
		switch {
		case program.err != nil:
			errs = append(errs, program.err)
		case program.process == nil:
			errs = append(errs, fmt.Errorf("%s does not run", name))
		default:
			errs = append(errs, program.process.Running())
		}
	}
	return errors.Join(errs...)
}

// Close ends everything that runs here. On the cluster, all stays.
func (o *OLM) Close() error {
	if o.ended != nil {
		o.ended()
		o.follows.Wait()
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	var errs []error
	for _, program := range o.programs {
		errs = append(errs, program.end())
	}
	for _, catalog := range o.catalogs {
		errs = append(errs, catalog.end())
	}
	return errors.Join(append(errs, os.RemoveAll(o.dir))...)
}

// follow has the operators run as their Deployments say, until the context ends.
func (o *OLM) follow(ctx context.Context) {
	for ctx.Err() == nil {
		// It tells of what is there first.
		watching, err := o.Admin.Watch(ctx, &appsv1.DeploymentList{}, client.InNamespace(Namespace))
		if err != nil {
			time.Sleep(pollInterval) // the API server is away
			continue
		}
		for event := range watching.ResultChan() {
			if deployment, ok := event.Object.(*appsv1.Deployment); ok {
				o.heed(deployment, event.Type != watch.Deleted)
			}
		}
	}
}

// heed starts or kills an operator. It is killed at once, as whoever waits for the status of
// the Deployment takes that for the truth.
func (o *OLM) heed(deployment *appsv1.Deployment, there bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	program := o.programs[deployment.Name]
	if program == nil {
		return
	}
	wanted := there && deployment.Spec.Replicas != nil && *deployment.Spec.Replicas > 0
	switch {
	case wanted && program.process == nil:
		program.process, program.err = o.run(deployment.Name, program)
	case !wanted:
		program.err = program.end()
	}
}

func (o *OLM) run(name string, program *program) (*environment.Process, error) {
	args := []string{program.command}
	if o.options.Interval != 0 {
		args = append(args, "--interval="+o.options.Interval.String())
	}
	command := exec.Command(o.program, args...) //nolint:noctx,gosec // outlives the start; our own program
	command.Env = []string{"KUBECONFIG=" + program.kubeconfig, "HOME=" + o.dir, "TMPDIR=" + o.dir}
	return environment.StartProcess(name, filepath.Join(o.options.Logs, name+".log"), command)
}

func (p *program) end() error {
	if p.process == nil {
		return nil
	}
	err := p.process.Kill()
	p.process = nil
	return err
}

// until waits for something, as long as the context lasts, and says at its end what was
// amiss.
func (o *OLM) until(ctx context.Context, what string, check func(context.Context) error) error {
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w: %w", what, ctx.Err(), err)
		case <-time.After(pollInterval):
		}
	}
}
