import Foundation
import GRDBSQLite
import KeepsakeStore
import Synchronization

/// SQLite's file layer with a recorder in between, for the folders that a test names.
///
/// GRDB opens databases with the process's default file layer (`sqlite3_vfs`), so this one replaces it for the rest of
/// the process: every other file is passed to the system's layer together with its own methods, as if there were
/// nothing in between. The index of a write-ahead log (`-shm`) isn't recorded: SQLite makes it again after a power cut.
enum RecordingFileLayer {
  /// Records what `body` lets SQLite do in `folder`, which must exist.
  static func record<Value>(_ folder: URL, into recorder: DiskRecorder, _ body: () throws -> Value) throws -> Value {
    guard install else { throw StoreError(.io, "SQLite has no file layer to stand before") }
    // SQLite asks for files by their real path.
    guard let real = realpath(folder.path, nil) else {
      throw StoreError(.missing, "there is no folder at \(folder.path)")
    }
    let path = String(cString: real) + "/"
    free(real)
    recorders.withLock { $0[path] = recorder }
    defer { recorders.withLock { $0[path] = nil } }
    return try body()
  }

  private static let recorders = Mutex<[String: DiskRecorder]>([:])

  private static func recorder(of path: UnsafePointer<CChar>?) -> (recorder: DiskRecorder, name: String)? {
    guard let path else { return nil }
    return recorders.withLock { recorders in
      guard !recorders.isEmpty else { return nil }
      let path = String(cString: path)
      guard let slash = path.lastIndex(of: "/"), let recorder = recorders[String(path[...slash])] else { return nil }
      return (recorder, String(path[path.index(after: slash)...]))
    }
  }

  // Written once, while `install` runs, and only read afterwards.
  private nonisolated(unsafe) static var system: UnsafeMutablePointer<sqlite3_vfs>?
  private nonisolated(unsafe) static let layer = UnsafeMutablePointer<sqlite3_vfs>.allocate(capacity: 1)
  private nonisolated(unsafe) static let methods = UnsafeMutablePointer<sqlite3_io_methods>.allocate(capacity: 1)

  /// Replaces the system's layer, once in a process.
  private static let install: Bool = {
    guard let found = sqlite3_vfs_find(nil), let name = strdup("keepsake-recording") else { return false }
    system = found
    methods.initialize(to: recordingMethods())
    var copy = found.pointee
    copy.pNext = nil
    copy.zName = UnsafePointer(name)
    copy.szOsFile += Int32(RecordedFile.headerBytes)
    copy.xOpen = { _, path, file, flags, outFlags in RecordingFileLayer.open(path, file, flags, outFlags) }
    copy.xDelete = { _, path, syncsFolder in RecordingFileLayer.delete(path, syncsFolder) }
    layer.initialize(to: copy)
    return sqlite3_vfs_register(layer, 1) == SQLITE_OK
  }()

  private static func open(
    _ path: UnsafePointer<CChar>?, _ file: UnsafeMutablePointer<sqlite3_file>?, _ flags: Int32,
    _ outFlags: UnsafeMutablePointer<Int32>?
  ) -> Int32 {
    guard let system, let file, let open = system.pointee.xOpen else { return SQLITE_MISUSE }
    guard let (recorder, name) = recorder(of: path) else { return open(system, path, file, flags, outFlags) }
    file.pointee.pMethods = nil
    let recorded = RecordedFile(file)
    let (result, number) = recorder.open(name) { open(system, path, recorded.real, flags, outFlags) }
    guard result == SQLITE_OK else { return result }
    // The system's layer syncs the folder with the first sync of a log or journal that may be new.
    let isLog = flags & (SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_SUPER_JOURNAL | SQLITE_OPEN_WAL) != 0
    recorded.header.initialize(
      to: RecordedFile.Header(
        base: sqlite3_file(pMethods: UnsafePointer(methods)), recorder: .passRetained(recorder), file: number,
        owesFolderSync: isLog && flags & SQLITE_OPEN_CREATE != 0))
    return result
  }

  private static func delete(_ path: UnsafePointer<CChar>?, _ syncsFolder: Int32) -> Int32 {
    guard let system, let delete = system.pointee.xDelete else { return SQLITE_MISUSE }
    guard let (recorder, name) = recorder(of: path) else { return delete(system, path, syncsFolder) }
    return recorder.delete(name, syncsFolder: syncsFolder & 1 != 0) { delete(system, path, syncsFolder) }
  }

  /// What changes a file or makes it durable is recorded; everything else is only passed on.
  private static func recordingMethods() -> sqlite3_io_methods {
    var methods = sqlite3_io_methods()
    // Version 2 has shared memory, which a write-ahead log needs; version 3 would map files into memory, bypassing all
    // writes.
    methods.iVersion = 2
    methods.xClose = { RecordedFile($0).close() }
    methods.xRead = { file, buffer, count, offset in
      RecordedFile(file).calling { $0.xRead($1, buffer, count, offset) }
    }
    methods.xWrite = { file, bytes, count, offset in
      RecordedFile(file).noting(
        { $0.xWrite($1, bytes, count, offset) },
        events: {
          [.write(file: $0, offset: Int(offset), bytes: bytes.map { Data(bytes: $0, count: Int(count)) } ?? Data())]
        })
    }
    methods.xTruncate = { file, size in
      RecordedFile(file).noting({ $0.xTruncate($1, size) }, events: { [.truncate(file: $0, size: Int(size))] })
    }
    methods.xSync = { file, flags in RecordedFile(file).sync(flags) }
    methods.xFileSize = { file, size in RecordedFile(file).calling { $0.xFileSize($1, size) } }
    methods.xLock = { file, level in RecordedFile(file).calling { $0.xLock($1, level) } }
    methods.xUnlock = { file, level in RecordedFile(file).calling { $0.xUnlock($1, level) } }
    methods.xCheckReservedLock = { file, result in RecordedFile(file).calling { $0.xCheckReservedLock($1, result) } }
    methods.xFileControl = { file, code, argument in RecordedFile(file).calling { $0.xFileControl($1, code, argument) }
    }
    methods.xSectorSize = { file in RecordedFile(file).calling { $0.xSectorSize($1) } }
    methods.xDeviceCharacteristics = { file in RecordedFile(file).calling { $0.xDeviceCharacteristics($1) } }
    methods.xShmMap = { file, region, size, extends, memory in
      RecordedFile(file).calling { $0.xShmMap($1, region, size, extends, memory) }
    }
    methods.xShmLock = { file, offset, count, flags in
      RecordedFile(file).calling { $0.xShmLock($1, offset, count, flags) }
    }
    methods.xShmBarrier = { file in
      let real = RecordedFile(file).real
      real.pointee.pMethods.pointee.xShmBarrier(real)
    }
    methods.xShmUnmap = { file, deletes in RecordedFile(file).calling { $0.xShmUnmap($1, deletes) } }
    return methods
  }
}

/// An open file of a recorded folder: our header, and behind it in the same memory the file of the system's layer.
private struct RecordedFile {
  struct Header {
    /// First, since SQLite finds the methods here.
    var base: sqlite3_file
    var recorder: Unmanaged<DiskRecorder>
    var file: Int
    var owesFolderSync: Bool
  }

  /// A multiple of what any type is aligned to.
  static let headerBytes = (MemoryLayout<Header>.stride + 15) / 16 * 16

  let header: UnsafeMutablePointer<Header>
  let real: UnsafeMutablePointer<sqlite3_file>

  /// SQLite never calls a method without its file.
  init(_ file: UnsafeMutablePointer<sqlite3_file>!) {
    let memory = UnsafeMutableRawPointer(file!)
    header = memory.assumingMemoryBound(to: Header.self)
    real = (memory + Self.headerBytes).assumingMemoryBound(to: sqlite3_file.self)
  }

  func calling(_ call: (sqlite3_io_methods, UnsafeMutablePointer<sqlite3_file>) -> Int32) -> Int32 {
    call(real.pointee.pMethods.pointee, real)
  }

  func noting(
    _ call: (sqlite3_io_methods, UnsafeMutablePointer<sqlite3_file>) -> Int32, events: (Int) -> [DiskEvent]
  ) -> Int32 {
    header.pointee.recorder.takeUnretainedValue().perform({ calling(call) }, events: { events(header.pointee.file) })
  }

  func sync(_ flags: Int32) -> Int32 {
    noting(
      { $0.xSync($1, flags) },
      events: { file in
        guard header.pointee.owesFolderSync else { return [.sync(file: file)] }
        header.pointee.owesFolderSync = false
        return [.sync(file: file), .syncFolder]
      })
  }

  func close() -> Int32 {
    let result = calling { $0.xClose($1) }
    header.pointee.recorder.release()
    header.pointee.base.pMethods = nil
    return result
  }
}
