#if Cloud
/// How much all unfinished uploads together may take of the disk, whosever they are.
///
/// Bytes count when they arrive, not when they are announced, so that nobody uses it up without sending them.
package struct UploadBudget: Hashable, Sendable {
  package static let standardBytes: Int64 = 8 << 30
  package static let standardFiles = 16_384

  package var bytes: Int64
  package var files: Int

  package init(bytes: Int64 = standardBytes, files: Int = standardFiles) {
    self.bytes = bytes
    self.files = files
  }

  /// What is left after an eviction: a sixteenth less than all, so that not every part that arrives needs another one.
  var afterEviction: UploadBudget { UploadBudget(bytes: bytes - bytes / 16, files: files - files / 16) }

  func fits(in budget: UploadBudget) -> Bool { bytes <= budget.bytes && files <= budget.files }

  static func + (left: UploadBudget, right: UploadBudget) -> UploadBudget {
    UploadBudget(bytes: left.bytes + right.bytes, files: left.files + right.files)
  }
}
#endif
