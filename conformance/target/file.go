package target

// File is a target file. Paths in it are relative to the folder it lies in.
type File struct {
	BaseURLs      []string             `yaml:"base-urls"`
	Credential    Credential           `yaml:"credential"`
	KeysFile      string               `yaml:"keys-file,omitempty"`
	Operations    Operations           `yaml:"operations"`
	OutsideQuotas []string             `yaml:"outside-quotas,omitempty"`
	Allowances    map[string]Allowance `yaml:"allowances"`
	Can           Can                  `yaml:"can,omitempty"`
	Limits        Limits               `yaml:"limits,omitempty"`
}

// Credential says how a key goes into a request.
type Credential struct {
	Header   string `yaml:"header"`
	Template string `yaml:"template"` // holds {key} once
}

// Operations are requests that are known to end in a known way.
type Operations struct {
	Valid   Operation  `yaml:"valid"`
	Invalid *Operation `yaml:"invalid,omitempty"` // fails validation
}

// Operation is one request. Body and BodyFile exclude each other.
type Operation struct {
	Method   string            `yaml:"method"`
	Path     string            `yaml:"path"`
	Headers  map[string]string `yaml:"headers,omitempty"`
	Body     string            `yaml:"body,omitempty"`
	BodyFile string            `yaml:"body-file,omitempty"`
	Expect   int64             `yaml:"expect,omitempty"` // the status that says so; 200 for valid, 422 for invalid
}

// Allowance is what a plan allows.
type Allowance struct {
	RequestsPerMinute int64 `yaml:"requests-per-minute"`
	Burst             int64 `yaml:"burst"`
	Concurrency       int64 `yaml:"concurrency"`
}

// Can is what the target offers beyond plain HTTP.
type Can struct {
	StalledUpload bool            `yaml:"stalled-upload,omitempty"` // a half-sent body stays in flight, and 100 Continue is answered once it is
	Control       *ControlAddress `yaml:"control,omitempty"`
}

// ControlAddress is where the control protocol is spoken.
type ControlAddress struct {
	URL       string `yaml:"url"`
	TokenFile string `yaml:"token-file"`
}

// Limits bound what a run may cost.
type Limits struct {
	MaxOperations int64 `yaml:"max-operations,omitempty"` // 0: not given, see [DefaultMaxOperations]
}

// DefaultMaxOperations is the most operations charged where a target file does
// not say.
const DefaultMaxOperations = 10_000

// ReadFile reads and checks a target file, and the bodies it names.
func ReadFile(path string) (File, error) { return File{}, nil }

// Write writes a target file and, beside it and named in it, the keys and the
// control token, which nobody but the owner may read.
func Write(path string, f File, keys []Key, token Secret) error { return nil }
