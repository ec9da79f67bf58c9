public import Foundation

// Core Foundation's types are Swift's own here: without Objective-C there is no bridge between the two.
public typealias CFString = String
public typealias CFDictionary = [String: Any]
public typealias CFTypeRef = Any

// https://developer.apple.com/documentation/security/keychain-items, "Item class keys and values", "Item attribute
// keys and values", "Search match limit keys and values", "Item return result keys", "Item value keys"
public let kSecClass: CFString = "1"
public let kSecClassGenericPassword: CFString = "2"
public let kSecAttrService: CFString = "3"
public let kSecAttrAccount: CFString = "4"
public let kSecAttrSynchronizable: CFString = "5"
public let kSecAttrAccessGroup: CFString = "6"
public let kSecAttrAccessible: CFString = "7"
public let kSecAttrAccessibleAfterFirstUnlock: CFString = "8"
public let kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly: CFString = "9"
public let kSecMatchLimit: CFString = "10"
public let kSecMatchLimitOne: CFString = "11"
public let kSecReturnData: CFString = "12"
public let kSecValueData: CFString = "13"
public let kSecUseDataProtectionKeychain: CFString = "14"

// https://developer.apple.com/documentation/security/security-framework-result-codes
public let errSecSuccess: OSStatus = 0
public let errSecItemNotFound: OSStatus = -25300
public let errSecDuplicateItem: OSStatus = -25299
public let errSecInteractionNotAllowed: OSStatus = -25308
public let errSecAuthFailed: OSStatus = -25293
public let errSecMissingEntitlement: OSStatus = -34018

/// https://developer.apple.com/documentation/kernel/osstatus
public typealias OSStatus = Int32

/// https://developer.apple.com/documentation/security/secitemcopymatching(_:_:)
public func SecItemCopyMatching(_ query: CFDictionary, _ result: UnsafeMutablePointer<CFTypeRef?>?) -> OSStatus { 0 }
/// https://developer.apple.com/documentation/security/secitemadd(_:_:)
public func SecItemAdd(_ attributes: CFDictionary, _ result: UnsafeMutablePointer<CFTypeRef?>?) -> OSStatus { 0 }
/// https://developer.apple.com/documentation/security/secitemupdate(_:_:)
public func SecItemUpdate(_ query: CFDictionary, _ attributesToUpdate: CFDictionary) -> OSStatus { 0 }
/// https://developer.apple.com/documentation/security/secitemdelete(_:)
public func SecItemDelete(_ query: CFDictionary) -> OSStatus { 0 }
/// https://developer.apple.com/documentation/security/seccopyerrormessagestring(_:_:)
public func SecCopyErrorMessageString(_ status: OSStatus, _ reserved: UnsafeMutableRawPointer?) -> CFString? { nil }
