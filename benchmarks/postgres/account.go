package postgres

import (
	"fmt"
	"os"
	"os/user"
	"strconv"
	"syscall"

	"github.com/flowfabric/flowfabric-go/benchmarks/driver"
)

// account is the user that the server's processes and files belong to.
type account struct {
	credential *syscall.Credential // nil: whoever we are
}

// accountOfServer is another one than root, which PostgreSQL refuses.
func accountOfServer() (account, error) {
	if os.Geteuid() != 0 {
		return account{}, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err1 == nil && err2 == nil {
			return account{&syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, nil
		}
	}
	return account{}, fmt.Errorf("PostgreSQL does not run as root: user postgres or nobody: %w (make bench-deps)",
		driver.ErrNotInstalled)
}

// attributes start a process as that user, which ends with us where the system can do that.
func (a account) attributes() *syscall.SysProcAttr {
	attributes := quitWithParent()
	attributes.Credential = a.credential
	return attributes
}

// dir makes a temporary directory of that user.
func (a account) dir() (string, error) {
	dir, err := os.MkdirTemp("", "ffbench")
	if err != nil {
		return "", err
	}
	if err := a.own(dir); err != nil {
		_ = os.RemoveAll(dir)
		return "", err
	}
	return dir, nil
}

func (a account) own(dir string) error {
	if a.credential == nil {
		return nil
	}
	return os.Chown(dir, int(a.credential.Uid), int(a.credential.Gid))
}
