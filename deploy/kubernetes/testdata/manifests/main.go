// Command manifests builds the kustomization in a folder as kubectl does, holds
// every object against the types of the Kubernetes API, with no field that they do
// not know and none twice, and prints all objects as one JSON list. It is a module
// of its own so that the API's types are no dependency of what they describe.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return errors.New("want the folder of a kustomization")
	}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), args[0])
	if err != nil {
		return err
	}
	var list []any
	for _, r := range built.Resources() {
		text, err := r.AsYAML()
		if err != nil {
			return err
		}
		object, err := typed(r.GetApiVersion(), r.GetKind())
		if err == nil {
			err = yaml.UnmarshalStrict(text, object)
		}
		if err != nil {
			return fmt.Errorf("%s %s: %w", r.GetKind(), r.GetName(), err)
		}
		list = append(list, object)
	}
	return json.NewEncoder(os.Stdout).Encode(list)
}

// typed is an empty object of a kind.
func typed(version, kind string) (any, error) {
	switch version + " " + kind {
	case "batch/v1 Job":
		return &batch.Job{}, nil
	case "v1 ConfigMap":
		return &core.ConfigMap{}, nil
	case "v1 Secret":
		return &core.Secret{}, nil
	case "v1 PersistentVolumeClaim":
		return &core.PersistentVolumeClaim{}, nil
	}
	return nil, fmt.Errorf("%s %s is not known here", version, kind)
}
