package main

import (
	"context"
	"fmt"
	"path/filepath"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/clusterextensions/operator-controller/internal/diskspace"
	"github.com/clusterextensions/operator-controller/internal/image"
	"github.com/clusterextensions/operator-controller/internal/mirrorset"
	"github.com/clusterextensions/operator-controller/internal/policykeeper"
)

// imageSources are what all pulls of a session have in common: credentials, mirrors, and who
// has to have signed what is pulled.
type imageSources struct {
	authFile string
	mirrors  *mirrorset.Layers
	policies *policykeeper.Keeper

	// judges are told when images are judged by other policies than before.
	judges []func(context.Context)
}

func (p *process) newImageSources(mgr ctrl.Manager, api kubernetes.Interface, told record.EventRecorder) (*imageSources, error) {
	sources := &imageSources{}
	var err error
	if sources.authFile, err = addPullSecrets(mgr, api, p.options); err != nil {
		return nil, err
	}
	if sources.mirrors, err = p.newMirrors(mgr, told); err != nil {
		return nil, err
	}
	sources.policies, err = policykeeper.New(policykeeper.Config{
		API: api, Client: mgr.GetClient(), Namespace: p.options.systemNamespace, Changed: sources.rejudge,
	})
	if err == nil {
		err = sources.policies.SetupWithManager(mgr)
	}
	if err != nil {
		return nil, fmt.Errorf("setting up ImagePolicies: %w", err)
	}
	return sources, nil
}

func (s *imageSources) rejudge(ctx context.Context) {
	for _, tell := range s.judges {
		tell(ctx)
	}
}

func (p *process) newPuller(dir string, sources *imageSources, space *diskspace.Space) (*image.Puller, error) {
	o := p.options
	puller, err := image.New(image.Config{
		Dir:           filepath.Join(o.cachePath, dir),
		CertsDir:      o.pullCAs,
		AuthFile:      sources.authFile,
		Realms:        o.realms,
		Registries:    sources.mirrors.RegistriesConf,
		PolicyFile:    o.signaturePolicy,
		RequirePolicy: o.requirePolicy,
		Policies:      sources.policies.Policies,
		Space:         space,
	})
	if err != nil {
		return nil, err
	}
	if _, told := p.unsigned.LoadOrStore(dir, true); puller.AcceptsAnything() && !told {
		ctrl.Log.Info("there is no signature policy: images are accepted from anyone", "images", dir)
	}
	return puller, nil
}
