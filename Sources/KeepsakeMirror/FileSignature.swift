import KeepsakePlatform

/// Distinguishes a file that changed from one that didn't, without reading it.
///
/// It includes the time of the inode's last change: no program can set that one, so a writer that resets the
/// modification time is noticed, too.
struct FileSignature: Hashable, Sendable, Codable {
  var size: Int64
  var modifiedNanoseconds: Int64
  var changedNanoseconds: Int64
  var inode: UInt64
  var device: UInt64

  init(size: Int64, modifiedNanoseconds: Int64, changedNanoseconds: Int64, inode: UInt64, device: UInt64) {
    self.size = size
    (self.modifiedNanoseconds, self.changedNanoseconds) = (modifiedNanoseconds, changedNanoseconds)
    (self.inode, self.device) = (inode, device)
  }

  init(_ status: borrowing stat) {
    size = Int64(status.st_size)
    modifiedNanoseconds = FileTime.modified(status).nanoseconds
    changedNanoseconds = FileTime.changed(status).nanoseconds
    inode = UInt64(truncatingIfNeeded: status.st_ino)
    device = UInt64(truncatingIfNeeded: status.st_dev)
  }

  var modifiedMilliseconds: Int64 { modifiedNanoseconds / 1_000_000 }

  /// Whether both are of the same file with the same bytes, even if it was renamed in between.
  func sameContent(as other: FileSignature) -> Bool {
    size == other.size && modifiedNanoseconds == other.modifiedNanoseconds && inode == other.inode
      && device == other.device
  }
}
