package engine

import "golang.org/x/sys/windows"

// freeBytes returns the number of bytes that this user may still write to the volume at dir.
func freeBytes(dir string) (uint64, error) {
	name, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, err
	}
	var free uint64
	err = windows.GetDiskFreeSpaceEx(name, &free, nil, nil)
	return free, err
}
