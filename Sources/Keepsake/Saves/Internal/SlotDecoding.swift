import Foundation
import KeepsakeArchive
import KeepsakeReplication

/// Decodes the saves of a slot.
///
/// An archive doesn't know the slot that it is in. If it doesn't fit the type, most likely because the game uses one
/// name for two slots, the error has to name both types and the slot.
enum SlotDecoding {
  /// The errors of contents that don't fit the program's types.
  private static let misfits: Set<ArchiveError.Code> = [.mismatch, .missingField, .unknownCase, .unknownClass]

  static func decode<Value: Archivable>(
    _ type: Value.Type, from bytes: Data, in slot: String, context: Any?
  ) throws -> Value {
    do {
      return try Archive.decode(type, from: bytes, context: context)
    } catch let error as ArchiveError where misfits.contains(error.code) {
      throw try named(error, type, bytes, slot)
    }
  }

  /// Throws `mismatch` if the bytes are a save of another type. Reads no values.
  static func checkType<Value: Archivable>(_ type: Value.Type, of bytes: Data, in slot: String) throws {
    if let error = try Archive.rootMismatch(with: type, in: bytes) { throw try named(error, type, bytes, slot) }
  }

  /// Returns a check for saves that the game hasn't loaded, which runs on the store's thread.
  static func typeCheck<Value: Archivable>(_ type: Value.Type, in slot: String) throws -> SaveTypeCheck {
    let root = try ArchiveRoot(type)
    return SaveTypeCheck { bytes in
      do {
        return try root.mismatch(in: bytes).map { try named($0, root.name, bytes, slot).message }
      } catch {
        return nil  // Not a readable archive: its type can't be known.
      }
    }
  }

  private static func named<Value: Archivable>(
    _ error: ArchiveError, _ type: Value.Type, _ bytes: Data, _ slot: String
  ) throws -> ArchiveError {
    try named(error, Value.archiveName, bytes, slot)
  }

  private static func named(
    _ error: ArchiveError, _ wanted: String, _ bytes: Data, _ slot: String
  ) throws -> ArchiveError {
    let stored = try Archive.rootType(of: bytes)
    var error = error
    error.message = """
      A save of the type \(stored) can't be read from the slot "\(slot)" as \(wanted): \(error.message)
      """
    return error
  }
}
