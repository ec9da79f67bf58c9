#if canImport(Glibc)
package import Glibc
#elseif canImport(Musl)
package import Musl
#elseif canImport(Android)
package import Android
#elseif canImport(Darwin)
package import Darwin
#endif

/// Identifies a file or folder, whatever its name.
package struct FileIdentity: Hashable, Sendable {
  private let device: UInt64
  private let inode: UInt64

  package init(_ status: borrowing stat) {
    device = UInt64(truncatingIfNeeded: status.st_dev)
    inode = UInt64(truncatingIfNeeded: status.st_ino)
  }

  /// Identifies what is at `path`; symbolic links are followed.
  ///
  /// - Returns: Nil if nothing is there.
  /// - Throws: `StoreError` if it can't be examined.
  package init?(at path: String) throws(StoreError) {
    var status = stat()
    guard stat(path, &status) == 0 else {
      let number = errno
      if number == ENOENT || number == ENOTDIR { return nil }
      throw StoreError(errorNumber: number, doing: "examining \(path)")
    }
    self.init(status)
  }

  /// Identifies an open file.
  init(of descriptor: Int32, path: String) throws(StoreError) {
    var status = stat()
    guard fstat(descriptor, &status) == 0 else {
      throw StoreError(errorNumber: errno, doing: "examining \(path)")
    }
    self.init(status)
  }
}
