import Foundation
import GRDBSQLite
import Synchronization

/// A file layer under SQLite whose writes and syncs fail on demand, for databases whose path contains `mark`; all other
/// files are passed on to the layer below.
enum FaultyDisk {
  /// Part of the path of every file that is to fail.
  static let mark = "keepsake-faulty"

  // SQLite's extended codes, whose macros Swift doesn't see.
  static let failedWrite = SQLITE_IOERR | 3 << 8
  static let failedSync = SQLITE_IOERR | 4 << 8

  enum Fault: Sendable {
    case sync(Int32)
    /// Fails after as many more writes.
    case write(Int32, after: Int = 0)
  }

  static let fault = Mutex<Fault?>(nil)

  /// Unchecked: written once, before the first file of this kind is opened, and never freed.
  private nonisolated(unsafe) static var below: UnsafeMutablePointer<sqlite3_vfs>?
  private nonisolated(unsafe) static let layer = UnsafeMutablePointer<sqlite3_vfs>.allocate(capacity: 1)

  /// A table of methods of the layer below, and the one that replaces it: journals have other methods than databases.
  private struct Methods {
    let below: UnsafePointer<sqlite3_io_methods>
    let own: UnsafePointer<sqlite3_io_methods>
  }
  /// Unchecked: guarded by the lock.
  private nonisolated(unsafe) static var wrapped: [Methods] = []
  private static let lock = NSLock()

  /// Whether the layer is installed, which happens at the first use, for the rest of the process.
  static let isInstalled: Bool = {
    guard let found = sqlite3_vfs_find(nil), let name = strdup("keepsake-faulty") else { return false }
    below = found
    var own = found.pointee
    own.zName = UnsafePointer(name)
    own.xOpen = { _, path, file, flags, outFlags in
      guard let below = FaultyDisk.below, let open = below.pointee.xOpen else { return SQLITE_CANTOPEN }
      let code = open(below, path, file, flags, outFlags)
      guard code == SQLITE_OK, let path, let file, let methods = file.pointee.pMethods,
        String(cString: path).contains(FaultyDisk.mark)
      else { return code }
      file.pointee.pMethods = FaultyDisk.methods(over: methods)
      return code
    }
    layer.initialize(to: own)
    return sqlite3_vfs_register(layer, 1) == SQLITE_OK
  }()

  private static func methods(over below: UnsafePointer<sqlite3_io_methods>) -> UnsafePointer<sqlite3_io_methods> {
    lock.withLock {
      if let known = wrapped.first(where: { $0.below == below }) { return known.own }
      var methods = below.pointee
      methods.xSync = { file, flags in
        if case .sync(let code) = FaultyDisk.fault.withLock({ $0 }) { return code }
        return FaultyDisk.below(file)?.pointee.xSync?(file, flags) ?? SQLITE_IOERR
      }
      methods.xWrite = { file, bytes, count, offset in
        if let code = FaultyDisk.failureOfWrite() { return code }
        return FaultyDisk.below(file)?.pointee.xWrite?(file, bytes, count, offset) ?? SQLITE_IOERR
      }
      let own = UnsafeMutablePointer<sqlite3_io_methods>.allocate(capacity: 1)
      own.initialize(to: methods)
      wrapped.append(Methods(below: below, own: UnsafePointer(own)))
      return UnsafePointer(own)
    }
  }

  private static func failureOfWrite() -> Int32? {
    fault.withLock { fault in
      guard case .write(let code, let spared) = fault else { return nil }
      if spared == 0 { return code }
      fault = .write(code, after: spared - 1)
      return nil
    }
  }

  private static func below(_ file: UnsafeMutablePointer<sqlite3_file>?) -> UnsafePointer<sqlite3_io_methods>? {
    lock.withLock { wrapped.first { $0.own == file?.pointee.pMethods }?.below }
  }
}
