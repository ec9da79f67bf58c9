#if Cloud
import Foundation
import KeepsakePlatform

/// Larger files that only their owner may read, which are written piece by piece.
extension PrivateFile {
  /// Opens a file for reading and writing, which is created if it doesn't exist, and which only its owner may read.
  static func openHandle(_ url: URL) throws -> FileHandle {
    let descriptor = open(url.path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard descriptor >= 0, fchmod(descriptor, 0o600) == 0 else {
      let cause = systemError()
      if descriptor >= 0 { close(descriptor) }
      throw ServerError(.inputOutput, "\(url.path) can't be written.", cause: cause)
    }
    return FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
  }

  /// Opens a new and empty file in the same way; one that is there is emptied.
  static func createHandle(_ url: URL) throws -> FileHandle {
    let handle = try openHandle(url)
    try empty(handle, url)
    return handle
  }

  /// Removes the bytes of an open file.
  static func empty(_ handle: FileHandle, _ url: URL) throws {
    guard ftruncate(handle.fileDescriptor, 0) == 0 else {
      throw ServerError(.inputOutput, "\(url.path) can't be written.", cause: systemError())
    }
  }

  /// Whether the file at a path is this open one.
  static func isFile(_ handle: FileHandle, at url: URL) -> Bool {
    var (opened, found) = (stat(), stat())
    guard fstat(handle.fileDescriptor, &opened) == 0, stat(url.path, &found) == 0 else { return false }
    return opened.st_dev == found.st_dev && opened.st_ino == found.st_ino
  }
}
#endif
