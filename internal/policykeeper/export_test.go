package policykeeper

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/clusterextensions/operator-controller/internal/follow"
)

// LeadsWhen does what [Keeper.SetupWithManager] does with the manager's own channel.
func (k *Keeper) LeadsWhen(elected <-chan struct{}) { k.leads = elected }

// Secrets are what the Keeper follows.
func (k *Keeper) Secrets() *follow.Set[*corev1.Secret] { return k.secrets }
