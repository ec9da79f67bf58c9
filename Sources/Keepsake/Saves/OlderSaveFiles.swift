public import Foundation
import KeepsakeReplication
import KeepsakeStore

/// The files of a folder in which an older game kept its saves, as `SaveSlots.importOlderSaves` takes them.
///
/// ```swift
/// let files = try OlderSaveFiles(in: folder)
/// for unread in files.unread { log("\(unread.name): \(unread.message)") }
/// try game.saves.importOlderSaves(files.saves, to: { Slot($0.name) }, decode: { try world(from: $0.bytes) })
/// ```
///
/// A snapshot: the files are read once and kept in memory, and are never changed.
public struct OlderSaveFiles: Sendable {
  /// A file that wasn't read.
  public struct UnreadFile: Sendable, Hashable {
    /// Why a file wasn't read.
    public enum Reason: Sendable, Hashable {
      /// It is a folder, a link, a pipe or a device.
      case notRegular
      /// It, or all files together, has more bytes than are read.
      case tooLarge
      /// The folder has more than `maximumFiles` files before it.
      case tooMany
      /// It can't be read, or is gone.
      case unreadable
    }

    /// The file's name.
    public let name: String
    /// Why it wasn't read.
    public let reason: Reason
    /// A sentence for people.
    public let message: String
  }

  /// The most files that are read of a folder.
  public static let maximumFiles = 1_000
  /// The most bytes that are read of one file, unless the caller sets less: the most that a save may have, 256 MiB.
  public static let maximumFileBytes = EncodedContent.maximumContentBytes
  /// The most bytes that are read of all files together, because they are in memory at once: 512 MiB.
  public static let maximumTotalBytes = 512 << 20

  /// The files that were read, sorted by name. The name of a save is that of its file, with its extension; its time is
  /// when the file was modified.
  public private(set) var saves: [OlderSave] = []
  /// The files that weren't read, sorted by name.
  public private(set) var unread: [UnreadFile] = []

  /// Reads the regular files that are directly in a folder.
  ///
  /// Links are not followed and folders not entered. Files whose names begin with a dot are the system's, and left out.
  /// Where the system downloads files only when needed, as in iCloud, download them first.
  ///
  /// - Parameters:
  ///   - folder: The folder.
  ///   - device: The name of the device that saved the files, if it is known.
  ///   - maximumFileBytes: The most bytes that are read of one file, from 0 to `maximumFileBytes`.
  /// - Throws: `StoreError` with `missing` if there is no folder, or `io` if its names can't be read. What is wrong
  ///   with a single file is in `unread`.
  public init(in folder: URL, device: String? = nil, maximumFileBytes: Int = Self.maximumFileBytes) throws {
    try self.init(
      in: folder, device: device, maximumFileBytes: maximumFileBytes, maximumTotalBytes: Self.maximumTotalBytes)
  }

  /// Reads the files, and of all together no more than `maximumTotalBytes`.
  init(in folder: URL, device: String?, maximumFileBytes: Int, maximumTotalBytes: Int) throws {
    let limit = min(max(0, maximumFileBytes), Self.maximumFileBytes)
    var rest = maximumTotalBytes
    for name in try Self.names(in: folder) {
      guard saves.count < Self.maximumFiles else {
        unread.append(.init(name: name, reason: .tooMany, message: "at most \(Self.maximumFiles) files are read"))
        continue
      }
      do {
        let save = try Self.read(name, in: folder, device, maximumBytes: min(limit, rest))
        rest -= save.bytes.count
        saves.append(save)
      } catch let problem as Problem {
        unread.append(.init(name: name, reason: problem.reason, message: problem.message))
      } catch let error as StoreError {
        guard error.code == .tooLarge else {
          unread.append(.init(name: name, reason: .unreadable, message: error.message))
          continue
        }
        let together = "all files together have more than \(maximumTotalBytes) bytes"
        unread.append(.init(name: name, reason: .tooLarge, message: rest < limit ? together : error.message))
      }
    }
  }

  private struct Problem: Error {
    var reason: UnreadFile.Reason
    var message: String
  }

  private static func names(in folder: URL) throws -> [String] {
    do {
      return try FileManager.default.contentsOfDirectory(atPath: folder.path).filter { !$0.hasPrefix(".") }.sorted()
    } catch CocoaError.fileReadNoSuchFile, CocoaError.fileNoSuchFile {
      throw StoreError(.missing, "there is no folder \(folder.path)")
    } catch {
      throw StoreError(.io, "the folder \(folder.path) can't be read", cause: error)
    }
  }

  private static func read(
    _ name: String, in folder: URL, _ device: String?, maximumBytes: Int
  ) throws -> OlderSave {
    let url = folder.appendingPathComponent(name)
    let attributes: [FileAttributeKey: Any]
    do {
      // Doesn't follow a link. Opening a device may have an effect, so its type is known before.
      attributes = try FileManager.default.attributesOfItem(atPath: url.path)
    } catch {
      throw StoreError(.io, "\(url.path) can't be examined", cause: error)
    }
    guard attributes[.type] as? FileAttributeType == .typeRegular else {
      throw Problem(reason: .notRegular, message: "\(url.path) is not a regular file")
    }
    guard let bytes = try AtomicFile.read(url, maximumBytes: maximumBytes, followsLinks: false) else {
      throw Problem(reason: .unreadable, message: "\(url.path) is gone")
    }
    let modified = attributes[.modificationDate] as? Date ?? Date(timeIntervalSince1970: 0)
    return OlderSave(name: name, bytes: bytes, modified: modified, device: device)
  }
}
