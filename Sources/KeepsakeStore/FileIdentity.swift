package import KeepsakePlatform

/// Identifies a file or folder, whatever its name.
package struct FileIdentity: Hashable, Sendable {
  private let device: UInt64
  private let inode: UInt64

  package init(_ status: FileStatus) { (device, inode) = (status.device, status.inode) }

  /// Identifies what is at `path`; symbolic links are followed.
  ///
  /// - Returns: Nil if nothing is there, or only what is left of a file system that is gone.
  /// - Throws: `StoreError` if it can't be examined.
  package init?(at path: String) throws(StoreError) {
    guard let status = FileStatus(at: path) else {
      let number = errno
      if Self.isGone(number) { return nil }
      throw StoreError(errorNumber: number, doing: "examining \(path)")
    }
    self.init(status)
  }

  /// Whether an error says that there is no file: no name, a file of a server that has lost it, or a device or program
  /// behind the file system that has ended.
  static func isGone(_ number: Int32) -> Bool {
    [ENOENT, ENOTDIR, SystemCall.staleFile, ENOTCONN, ENODEV, ENXIO].contains(number)
  }

  /// Identifies an open file.
  init(of descriptor: Int32, path: String) throws(StoreError) {
    guard let status = FileStatus(of: descriptor) else {
      throw StoreError(errorNumber: errno, doing: "examining \(path)")
    }
    self.init(status)
  }
}
