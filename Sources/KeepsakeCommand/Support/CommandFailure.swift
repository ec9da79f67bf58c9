#if Cloud
import ArgumentParser
import Foundation
import Keepsake
import KeepsakeArchive
import KeepsakeInterchange
import KeepsakeMirror
import KeepsakeReplication
import KeepsakeServer
import KeepsakeStore
import KeepsakeSync

/// Why a command could not do what was requested: an exit code of <sysexits.h>, what happened, and what to do next.
struct CommandFailure: Error, Hashable, Sendable, Codable {
  enum Kind: Int32, Sendable, Codable {
    /// Arguments or settings that can't be used together, or without another one.
    case usage = 64
    /// The input is damaged, or of no known kind.
    case data = 65
    /// What was named doesn't exist.
    case noInput = 66
    /// The cloud can't be reached, or has a failure.
    case unavailable = 69
    /// Only this program is to blame.
    case software = 70
    /// The file to write exists already.
    case exists = 73
    /// The disk refused an operation.
    case io = 74
    /// Another process holds it, or it was stopped before it was done; trying again later may work.
    case temporary = 75
    /// The cloud or the system doesn't allow it.
    case permission = 77
    /// Written by a newer version.
    case newer = 78

    /// What an error number of the system means for the input.
    init(errno number: Int32) {
      self =
        switch number {
        case ENOENT, ENOTDIR, ELOOP: .noInput
        case EACCES, EPERM, EROFS: .permission
        default: .io
        }
    }
  }
  var kind: Kind
  var message: String
  /// What a person can do next.
  var next: String?

  init(_ kind: Kind, _ message: String, next: String? = nil) {
    self.kind = kind
    self.message = message
    self.next = next
  }

  /// The failure of a command that was given a path at which it finds nothing: there is nothing, or the system doesn't
  /// say what is there.
  static func nothing(at path: String) -> CommandFailure {
    guard access(path, F_OK) != 0, errno != ENOENT, errno != ENOTDIR else {
      return CommandFailure(.noInput, "there is nothing at \(path)", next: "check the path")
    }
    let number = errno
    if number == ELOOP {
      return CommandFailure(.noInput, "\(path) is a symbolic link that leads back to itself", next: "check the path")
    }
    return CommandFailure(system: number, "\(path) can't be looked at: \(String(cString: strerror(number)))")
  }

  /// The failure of a command that isn't permitted to look at what a path names; nil if it is, or if nothing is there.
  static func denied(at path: String) -> CommandFailure? {
    guard access(path, F_OK) != 0 else { return nil }
    let number = errno
    guard Kind(errno: number) == .permission else { return nil }
    return CommandFailure(system: number, "\(path) can't be looked at: \(String(cString: strerror(number)))")
  }

  /// The failure of a command that found a file whose name it can't give back to the system.
  static let undecodableName = CommandFailure(.noInput, "its name isn't valid UTF-8", next: "rename it")

  /// The failure of a command whose output exists already.
  static func exists(_ path: String) -> CommandFailure {
    CommandFailure(.exists, "\(path) already exists", next: "name another file, or use --force to replace it")
  }

  /// What to do about data of a newer version.
  private static let newerAdvice = "use a newer version of keepsake"

  /// What to do about a damaged store, unless the command has just tried that.
  private static let inspectAdvice = "use keepsake inspect to see what can still be read"

  /// The same failure without the advice to inspect the store, for commands that failed at just that.
  var withoutInspectAdvice: CommandFailure {
    var failure = self
    if failure.next == Self.inspectAdvice { failure.next = nil }
    return failure
  }

  /// Converts any error that a command can meet.
  init(_ error: any Error) {
    self.init(converting: error)
    if error is ServerError || error is BackupError || error is TransportFailure || error is AccountError
      || error is AssetError
    {
      makeClause()
    }
  }

  private init(converting error: any Error) {
    switch error {
    case let error as CommandFailure: self = error
    case let error as StoreError: self.init(store: error)
    case let error as MirrorError: self.init(mirror: error)
    case let error as TransportFailure: self.init(transport: error)
    case let error as AccountError: self.init(account: error)
    case let error as SyncError: self.init(sync: error)
    case let error as ServerError: self.init(server: error)
    case let error as BackupError: self.init(backup: error)
    case let error as ArchiveError: self.init(archive: error)
    case let error as AssetError: self.init(asset: error)
    case let error as GameManifestError: self.init(manifest: error)
    case let error as PropertyListError: self.init(.data, "\(error)")
    case let error as StructuredFileError: self.init(.data, "\(error)")
    case let error as CocoaError where Self.fileCodes.contains(error.errorCode): self.init(file: error)
    case let error as POSIXError: self.init(system: error.code.rawValue, ErrorReason.text(error))
    default: self.init(.software, ErrorReason.text(error))
    }
  }

  /// The numbers of Foundation's errors about files; others are about what is in them.
  private static let fileCodes = 256..<1_024

  private init(file error: CocoaError) {
    let path = (error.userInfo[NSFilePathErrorKey] as? String) ?? error.url?.path
    let message = (path.map { "\($0): " } ?? "") + ErrorReason.text(error)
    switch error.code {
    case .fileReadCorruptFile, .fileReadInapplicableStringEncoding, .fileReadUnknownStringEncoding:
      self.init(.data, message)
    case .fileNoSuchFile, .fileReadNoSuchFile: self.init(system: ENOENT, message)
    case .fileReadNoPermission, .fileWriteNoPermission: self.init(system: EACCES, message)
    case .fileWriteVolumeReadOnly: self.init(system: EROFS, message)
    case .fileWriteOutOfSpace: self.init(system: ENOSPC, message)
    default: self.init(system: ErrorReason.systemNumber(of: error) ?? EIO, message)
    }
  }

  init(system number: Int32, _ message: String) {
    let next: String? =
      switch Kind(errno: number) {
      case .noInput: "check the path"
      case .permission: Self.permissionAdvice
      default: number == ENOSPC || number == EDQUOT ? "make room and try again" : nil
      }
    self.init(Kind(errno: number), message, next: next)
  }

  private static let permissionAdvice = "check who owns the folder and its files, and what that user may do with them"

  private init(store error: StoreError) {
    switch error.code {
    case .damaged: self.init(.data, error.message, next: Self.inspectAdvice)
    case .tooLarge: self.init(.data, error.message)
    case .io, .diskFull, .timedOut:
      self.init(
        .io, error.explanation, next: error.code == .diskFull ? "make room and try again; nothing was changed" : nil)
    case .notPermitted: self.init(.permission, error.message, next: Self.permissionAdvice)
    case .newerFormat: self.init(.newer, error.message, next: Self.newerAdvice)
    case .inUse:
      self.init(.temporary, error.message, next: "stop the game or the keepsake sync that has it open, then try again")
    case .missing: self.init(.noInput, error.message, next: "check the path, and with keepsake inspect what is there")
    case .removed: self.init(.noInput, error.message, next: "put the folder back, or name the new one")
    case .misuse: self.init(.data, error.message)
    case .tampered:
      self.init(.data, error.message, next: "open the store with the game, which by default quarantines such rows")
    case .wrongSecret, .otherSeal:
      self.init(
        .permission, error.message,
        next:
          """
          give the game's secret with --secret-file, and the player with --player if the game binds its stores to \
          players
          """)
    }
  }

  private init(archive error: ArchiveError) {
    switch error.code {
    case .tooNew: self.init(.newer, "\(error)", next: Self.newerAdvice)
    case .damaged:
      self.init(.data, "\(error)", next: "go back to an older copy; keepsake history lists the versions in a store")
    default: self.init(.data, "\(error)")
    }
  }

  private static let entitlingAdvice = "entitle the app with keepsake team grant"

  private init(account error: AccountError) {
    switch error.code {
    case .codeUnknown:
      self.init(.permission, error.message, next: "get a new code with keepsake sync --pair on the other device")
    case .tooManyGuesses(let wait):
      self.init(.temporary, error.message, next: "wait \(CountText.of((wait + 999) / 1_000, "second")), then try again")
    case .identityTaken, .identityUnknown, .retired, .readOnly: self.init(.permission, error.message)
    case .unauthorized: self.init(.permission, error.message, next: "check --app-key: keepsake serve prints it")
    case .notEntitled: self.init(.permission, error.message, next: Self.entitlingAdvice)
    case .failed(let failure): self.init(transport: failure)
    }
  }

  private init(sync error: SyncError) {
    switch error {
    case .transport(let failure): self.init(transport: failure)
    case .store(let cause as StoreError): self.init(store: cause)
    case .otherContainer: self.init(.data, error.description, next: "use another --state folder for another player")
    case .refused, .gone: self.init(.data, error.description)
    case .notRunning, .store: self.init(.software, error.description)
    }
  }

  private init(server error: ServerError) {
    switch error.code {
    case .folderInUse:
      self.init(.temporary, error.message, next: "stop the other server, or name another folder with --data")
    case .newerData: self.init(.newer, error.message, next: Self.newerAdvice)
    case .inputOutput:
      let cause = error.cause.map { CommandFailure($0) }
      self.init(
        cause?.kind == .permission ? .permission : .io, error.description,
        next: "check the disk, and who may read and write the folder of --data")
    case .damaged: self.init(.data, error.description, next: "restore the folder of --data from a backup")
    case .configuration: self.init(.usage, error.message)
    case .missing: self.init(.noInput, error.message)
    case .unusableFile: self.init(.data, error.description)
    case .overloaded: self.init(.temporary, error.message, next: "try again later")
    }
  }

  private init(backup error: BackupError) {
    switch error.code {
    case .notBackup: self.init(.data, error.message, next: "name a file that keepsake cloud backup has written")
    case .damaged: self.init(.data, error.description, next: "take another backup: nothing of this one was used")
    case .newerFormat: self.init(.newer, error.message, next: Self.newerAdvice)
    case .exists:
      self.init(.exists, error.message, next: "name another file, or use --force to replace it")
    case .notEmpty:
      self.init(.exists, error.message, next: "name another folder, or move what is in it elsewhere first")
    case .inUse: self.init(.temporary, error.message, next: "wait until it is done, or name another file")
    case .unsettled: self.init(.temporary, error.message, next: "try again")
    case .stopped: self.init(.temporary, error.message, next: "run the command again: nothing was left")
    case .inputOutput:
      let cause = error.cause.map { CommandFailure($0) }
      self.init(cause.map { $0.kind == .software ? .io : $0.kind } ?? .io, error.description, next: cause?.next)
    }
  }

  private init(mirror error: MirrorError) {
    switch error.code {
    case .folder: self.init(.noInput, error.description, next: "check the path of the folder")
    case .io: self.init(.io, error.description, next: "check the disk, then try again: nothing is lost")
    case .newer: self.init(.newer, error.description, next: Self.newerAdvice)
    case .blocked, .tooLarge, .tooMany, .content: self.init(.data, error.description)
    }
  }

  private init(asset error: AssetError) {
    switch error.code {
    case .noManifest: self.init(.noInput, error.message)
    case .missing: self.init(.noInput, error.message, next: "check the path")
    case .unreadable: self.init(.io, error.message)
    case .newerManifest: self.init(.newer, error.message, next: Self.newerAdvice)
    case .stale, .cancelled, .timedOut: self.init(.temporary, error.message, next: "try again")
    case .refusedPath: self.init(.data, error.message, next: "rename the files, or move them out of the folder")
    case .unknown, .damaged, .overBudget, .damagedManifest, .tooLarge, .misuse: self.init(.data, error.message)
    }
  }

  private init(manifest error: GameManifestError) {
    switch error.code {
    case .missing, .unknownGame: self.init(.noInput, error.description, next: error.next)
    case .tooLarge, .form, .token, .path: self.init(.data, error.description, next: error.next)
    }
  }

  private init(transport error: TransportFailure) {
    switch error.kind {
    case .unauthorized:
      self.init(
        .permission, error.message,
        next: "check --app-key; a removed device can join again with --join and a new --state folder")
    case .notEntitled: self.init(.permission, error.message, next: Self.entitlingAdvice)
    case .unreachable, .interrupted, .server:
      self.init(.unavailable, error.message, next: "nothing is lost: the rest is sent at the next run")
    case .rejected: self.init(.data, error.message)
    }
  }
}
#endif
