package bundle

import (
	"path"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// certificateVolume is one of the places where operators look for their
// serving certificate.
type certificateVolume struct {
	name, mountPath   string
	certFile, keyFile string
}

func certificateVolumes() []certificateVolume {
	return []certificateVolume{
		{name: "webhook-cert", mountPath: "/tmp/k8s-webhook-server/serving-certs", certFile: "tls.crt", keyFile: "tls.key"},
		{name: "apiservice-cert", mountPath: "/apiserver.local.config/certificates", certFile: "apiserver.crt", keyFile: "apiserver.key"},
	}
}

func (v certificateVolume) volume(secret string) corev1.Volume {
	return corev1.Volume{
		Name: v.name,
		VolumeSource: corev1.VolumeSource{
			Secret: &corev1.SecretVolumeSource{
				SecretName: secret,
				Items: []corev1.KeyToPath{
					{Key: corev1.TLSCertKey, Path: v.certFile},
					{Key: corev1.TLSPrivateKeyKey, Path: v.keyFile},
				},
			},
		},
	}
}

// mountCertificate gives every container the certificate in both places. What
// the bundle itself has there, under whatever name, is replaced: volume and
// mounts.
func mountCertificate(pod *corev1.PodSpec, secret string) {
	replaced := replacedVolumes(pod)
	isReplaced := func(name string) bool { return replaced[name] != "" }

	pod.Volumes = slices.DeleteFunc(pod.Volumes, func(v corev1.Volume) bool { return isReplaced(v.Name) })
	for _, v := range certificateVolumes() {
		pod.Volumes = append(pod.Volumes, v.volume(secret))
	}
	for i := range pod.Containers {
		container := &pod.Containers[i]
		container.VolumeMounts = slices.DeleteFunc(container.VolumeMounts, func(m corev1.VolumeMount) bool { return isReplaced(m.Name) })
		for _, v := range certificateVolumes() {
			container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: v.name, MountPath: v.mountPath})
		}
	}
	// An init container keeps its mounts, but not of volumes that are gone.
	for i := range pod.InitContainers {
		mounts := pod.InitContainers[i].VolumeMounts
		for j := range mounts {
			if successor, ok := replaced[mounts[j].Name]; ok {
				mounts[j].Name = successor
			}
		}
	}
}

// replacedVolumes maps the volumes that give way to those that take their
// place: those named alike, and those mounted where they go.
func replacedVolumes(pod *corev1.PodSpec) map[string]string {
	replaced := map[string]string{}
	for _, v := range certificateVolumes() {
		for _, container := range pod.Containers {
			for _, mount := range container.VolumeMounts {
				if path.Clean(mount.MountPath) == v.mountPath {
					replaced[mount.Name] = v.name
				}
			}
		}
	}
	for _, v := range certificateVolumes() {
		replaced[v.name] = v.name
	}
	return replaced
}
